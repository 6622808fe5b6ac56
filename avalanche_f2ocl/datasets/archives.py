"""Folders, zips and tars of images: each lists names of files and opens them, and all can be sent to processes."""

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
"""Largest file that is read, in bytes: 512 MiB, after unpacking from a zip."""

_TAR_LINKS = 40  # links followed from one to the next, as many as Linux follows
_ENCRYPTED = 1
_LINKS = 3  # without a limit, folders that link to each other would have endless paths
_PIECE = 1 << 12  # compressed bytes read at a time, from which no method makes more than about 80 MB
_NOWHERE, _SPARSE = (-1, 0), (-2, 0)


class Archive(Protocol):
    """Names of files, with ``/`` between their parts, and their contents."""

    def listed(self) -> list[str]:
        """Names of files, and of folders with ``/`` at the end."""
        ...

    def bytes(self, name: str) -> int:
        """The length of a listed file in bytes."""
        ...

    def open(self, name: str) -> BinaryIO:
        """Opens a listed file for reading.

        Raises:
            Exception: of any type, if the file cannot be read.
        """
        ...


class Folder:
    """A folder and its subfolders; up to three links to folders are followed on a path.

    Args:
        path: path of the folder.
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
        if (place.st_dev, place.st_ino) in above:  # a link to a folder that contains it
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
            except (OSError, RecursionError):  # no permission, a link to itself, or too deep
                pass  # it then counts as a file that cannot be read
            names.append(name)

    def bytes(self, name: str) -> int:
        return (self.path / name).stat().st_size

    def open(self, name: str) -> BinaryIO:
        place = (self.path / name).stat()
        if not stat.S_ISREG(place.st_mode):  # reading a pipe could wait for ever
            raise OSError("it is no ordinary file")
        _check_bytes(place.st_size)
        return (self.path / name).open("rb")


class Zip:
    """A zip; ``\\`` between the parts of a name counts as ``/``.

    Args:
        path: path of the zip.

    Raises:
        BadZipFile: the file is no zip.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: tuple[int, ZipFile] | None = None
        self._names = {info.filename.replace("\\", "/"): info.filename for info in self._archive.infolist()}

    @property
    def _archive(self) -> ZipFile:
        """The zip, opened once in each process, since processes that share a file's position disturb each other."""
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
        # Without a limit, a file that lies about its length would be unpacked whole; other methods do that anyway.
        piece = max(1, info.file_size) if info.compress_type in (ZIP_STORED, ZIP_DEFLATED) else _PIECE
        with self._archive.open(info) as file:
            return BytesIO(b"".join(iter(partial(file.read, piece), b"")))

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_opened": None}


class Tar:
    """An uncompressed tar; any file can be read without reading those before it.

    Args:
        path: path of the tar.

    Raises:
        tarfile.ReadError: the file is no tar.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """Offset and length in bytes of each file; a link has those of its target."""
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
            if not target.startswith(("/", "..")):  # links that lead out of the tar are skipped, as such names are
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
    """A folder in an archive.

    Args:
        archive: the archive that contains it.
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
    """Whether a file is a zip or tar, judged by its contents."""
    return tarfile.is_tarfile(path) or is_zipfile(path)


def open_archive(path: str | Path) -> Archive:
    """Opens the folder, zip or tar at a path.

    Raises:
        FileNotFoundError: there is no such path.
        ValueError: the file is of another kind.
    """
    path = Path(path)
    if path.is_dir():
        return Folder(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such folder, zip or tar: {str(path)!r}")
    try:
        if tarfile.is_tarfile(path):  # checked first, since a tar whose last file is a zip looks like a zip
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
