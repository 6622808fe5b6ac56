"""What holds files of images: folders, zips and tars. Each lists names and opens one; all can be sent to processes."""

import os
import posixpath
import stat
import tarfile
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Protocol
from zipfile import BadZipFile, ZipFile, is_zipfile

MAX_BYTES = 2**29
"""Largest file that is read, in bytes, 512 MiB; what a zip unpacks to counts."""


class Archive(Protocol):
    """Names of files, with ``/`` between their parts, and their contents."""

    def listed(self) -> list[str]:
        """Names of files, and of folders with ``/`` at the end."""
        ...

    def bytes(self, name: str) -> int:
        """How long a listed file is."""
        ...

    def open(self, name: str) -> BinaryIO:
        """A listed file, for reading.

        Raises:
            Exception: of any type, where it cannot be read.
        """
        ...


class Folder:
    """A folder and those in it; links to folders are followed, once each.

    Args:
        path: of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def listed(self) -> list[str]:
        names: list[str] = []
        self._walk("", names, set())
        return names

    def _walk(self, prefix: str, names: list[str], above: set[tuple[int, int]]) -> None:
        folder = self.path / prefix
        place = folder.stat()
        if (place.st_dev, place.st_ino) in above:  # a link to a folder that it is in
            return
        above = above | {(place.st_dev, place.st_ino)}
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            name = prefix + entry.name
            if entry.is_dir():
                names.append(name + "/")
                self._walk(name + "/", names, above)
            else:
                names.append(name)

    def bytes(self, name: str) -> int:
        return (self.path / name).stat().st_size

    def open(self, name: str) -> BinaryIO:
        place = (self.path / name).stat()
        if not stat.S_ISREG(place.st_mode):  # to read a pipe could wait for ever
            raise OSError("it is no ordinary file")
        _check_bytes(place.st_size)
        return (self.path / name).open("rb")


class Zip:
    """A zip; ``\\`` between the parts of a name counts as ``/``.

    Args:
        path: of the zip.

    Raises:
        BadZipFile: it is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: tuple[int, ZipFile] | None = None
        self._names = {info.filename.replace("\\", "/"): info.filename for info in self._archive.infolist()}

    @property
    def _archive(self) -> ZipFile:
        """Opened once in each process: processes that share a file's position disturb each other."""
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), ZipFile(self.path)
        return self._opened[1]

    def listed(self) -> list[str]:
        return list(self._names)

    def bytes(self, name: str) -> int:
        return self._archive.getinfo(self._names[name]).file_size

    def open(self, name: str) -> BinaryIO:
        info = self._archive.getinfo(self._names[name])
        _check_bytes(info.file_size)
        return BytesIO(self._archive.read(info))

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_opened": None}


class Tar:
    """A tar that is not compressed, of which any file can be read without those before it.

    Args:
        path: of the tar.

    Raises:
        tarfile.ReadError: it is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """Offset and length in bytes of each file."""
        with tarfile.open(self.path, "r:") as archive:
            return {posixpath.normpath(m.name): (m.offset_data, m.size) for m in archive if m.isfile()}

    def listed(self) -> list[str]:
        return list(self._places)

    def bytes(self, name: str) -> int:
        return self._places[name][1]

    def open(self, name: str) -> BinaryIO:
        start, size = self._places[name]
        _check_bytes(size)
        with self.path.open("rb") as file:
            file.seek(start)
            return BytesIO(file.read(size))


class Inside:
    """A folder of an archive.

    Args:
        archive: that it is in.
        folder: its name, with ``/`` at the end.
    """

    def __init__(self, archive: Archive, folder: str) -> None:
        self.archive, self.folder = archive, folder

    def listed(self) -> list[str]:
        names = (name for name in self.archive.listed() if name.startswith(self.folder))
        return [name.removeprefix(self.folder) for name in names]

    def bytes(self, name: str) -> int:
        return self.archive.bytes(self.folder + name)

    def open(self, name: str) -> BinaryIO:
        return self.archive.open(self.folder + name)


def open_archive(path: str | Path) -> Archive:
    """The folder, zip or tar at a path.

    Raises:
        FileNotFoundError: there is nothing.
        ValueError: a file of another kind.
    """
    path = Path(path)
    if path.is_dir():
        return Folder(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such folder, zip or tar: {str(path)!r}")
    try:
        if is_zipfile(path):
            return Zip(path)
        if tarfile.is_tarfile(path):
            archive = Tar(path)
            archive.listed()
            return archive
    except (BadZipFile, tarfile.ReadError) as error:
        raise ValueError(f"{str(path)!r} is damaged, or compressed as a whole ({error}): unpack it") from error
    raise ValueError(f"{str(path)!r} is neither a folder nor a zip or tar of images")


def _check_bytes(size: int) -> None:
    if size > MAX_BYTES:
        raise OSError(f"it has {size} bytes, more than {MAX_BYTES}")
