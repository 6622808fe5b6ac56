"""What holds files of images: folders, zips and tars. Each lists names and opens one; all can be sent to processes."""

import os
import posixpath
import stat
import tarfile
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Protocol
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, is_zipfile

MAX_BYTES = 2**29
"""Largest file that is read, in bytes, 512 MiB; what a zip unpacks to counts."""

_TAR_LINKS = 40  # from one to the next, as many as Linux follows
_ENCRYPTED = 1
_LINKS = 3  # folders that link to each other have as many paths as orders
_PIECE = 1 << 12  # bytes, of which no method makes more than some 80 MB
_NOWHERE, _SPARSE = (-1, 0), (-2, 0)


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
    """A folder and those in it; links to folders are followed, three of them on one path.

    Args:
        path: of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def listed(self) -> list[str]:
        names: list[str] = []
        self._walk("", names, set(), 0)
        return names

    def _walk(self, prefix: str, names: list[str], above: set[tuple[int, int]], links: int) -> None:
        folder = self.path / prefix
        place = folder.stat()
        if (place.st_dev, place.st_ino) in above:  # a link to a folder that it is in
            return
        above = above | {(place.st_dev, place.st_ino)}
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
        for entry in ordered:
            name, linked = prefix + entry.name, links + entry.is_symlink()
            try:
                if entry.is_dir() and linked <= _LINKS:
                    self._walk(name + "/", names, above, linked)
                    name += "/"
            except (OSError, RecursionError):  # it may not be read, is a link to itself, or lies too deep
                pass  # so it counts as a file, which cannot be read
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
        if info.flag_bits & _ENCRYPTED:
            raise OSError("it is encrypted")
        # Without a length, what lies about its own would be unpacked whole; other methods unpack each piece whole.
        piece = max(1, info.file_size) if info.compress_type in (ZIP_STORED, ZIP_DEFLATED) else _PIECE
        with self._archive.open(info) as file:
            return BytesIO(b"".join(iter(partial(file.read, piece), b"")))

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
        """Offset and length in bytes of each file; those of a link are what it leads to."""
        places: dict[str, tuple[int, int]] = {}
        links: dict[str, str] = {}
        with tarfile.open(self.path, "r:") as archive:
            for member in archive:
                name = posixpath.normpath(member.name)
                if member.issparse():
                    places[name] = _SPARSE
                elif member.isfile():
                    places[name] = member.offset_data, member.size
                elif member.islnk():
                    links[name] = posixpath.normpath(member.linkname)
                elif member.issym():
                    links[name] = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname))
        for name, target in links.items():
            for _ in range(_TAR_LINKS):
                target = links.get(target, target)
            if not target.startswith(("/", "..")):  # those that lead out are passed over as such names are
                places[name] = places.get(target, _NOWHERE)
        return places

    def listed(self) -> list[str]:
        return list(self._places)

    def bytes(self, name: str) -> int:
        return self._places[name][1]

    def open(self, name: str) -> BinaryIO:
        start, size = self._places[name]
        if start < 0:
            raise OSError("it is a link to nothing" if (start, size) == _NOWHERE else "it is stored with holes")
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


def is_archive(path: str | Path) -> bool:
    """Whether a file is a zip or tar, by what is in it."""
    return tarfile.is_tarfile(path) or is_zipfile(path)


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
        if tarfile.is_tarfile(path):  # first: its last file may be a zip, which it would then look like
            archive = Tar(path)
            archive.listed()
            return archive
        if is_zipfile(path):
            return Zip(path)
    except OSError:
        raise
    except Exception as error:  # a hostile file can raise anything
        raise ValueError(f"{str(path)!r} is damaged, or compressed as a whole ({error}): unpack it") from error
    raise ValueError(f"{str(path)!r} is neither a folder nor a zip or tar of images")


def _check_bytes(size: int) -> None:
    if not 0 <= size <= MAX_BYTES:
        raise OSError(f"it has {size} bytes, allowed are {MAX_BYTES}")
