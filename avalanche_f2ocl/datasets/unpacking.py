"""Compressed tars, unpacked as a whole or not at all."""

import os
import tarfile
import zlib
from gzip import BadGzipFile
from pathlib import Path
from tempfile import TemporaryDirectory


def unpack(path: Path, folder: Path) -> None:
    """Unpacks a folder of a tar, compressed or not; ``folder`` only ever appears as a whole.

    Names and links that lead out of the folder are refused. If another process was quicker, its folder
    stays.

    Args:
        path: path of the tar.
        folder: the folder to make; the tar has a folder of the same name. Everything else in the tar is left out.

    Raises:
        ValueError: the file is no tar or is damaged, has a name that leads elsewhere, or lacks this folder.
        OSError: there is no room.

    Example:
        >>> unpack(Path("birds.tgz"), Path("data/birds"))  # doctest: +SKIP
    """
    with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as unfinished:  # on the same file system
        try:
            with tarfile.open(path) as archive:
                archive.extractall(unfinished, filter="data")
        except (tarfile.TarError, EOFError, zlib.error, BadGzipFile) as error:
            raise ValueError(f"{str(path)!r} cannot be unpacked ({error}): delete it and download it again") from error
        except OSError as error:
            raise OSError(f"{str(path)!r} could not be unpacked to {str(folder)!r} ({error})") from error
        whole = Path(unfinished) / folder.name
        if not whole.is_dir():
            raise ValueError(f"{str(path)!r} has no folder {folder.name}")
        try:
            os.replace(whole, folder)
        except OSError:
            if not folder.is_dir():
                raise
