"""The images of a folder, zip or tar."""

import unicodedata
from functools import cached_property
from pathlib import Path, PurePosixPath

from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor

from avalanche_f2ocl.datasets.archives import Archive, open_archive
from avalanche_f2ocl.datasets.reading import UnreadableImage, image_size, is_image, missing_plugin, read_image
from avalanche_f2ocl.image_fit import ImageFit

_CLUTTER = {"__macosx", "thumbs.db", "ehthumbs.db", "desktop.ini", "$recycle.bin", "system volume information"}


class ImageSource:
    """Lists the files in a folder, zip or tar, at any depth, and reads images from it.

    Silently skipped are names that begin with a dot, files that operating systems leave behind (``__MACOSX``,
    ``Thumbs.db``, ``desktop.ini``), and names that lead out of the archive.

    Args:
        path: path of the folder, zip or tar.
        archive: the archive that holds the files; by default the one at ``path``.

    Raises:
        FileNotFoundError: there is no such path.
        ValueError: the file is of another kind.
    """

    def __init__(self, path: str | Path, archive: Archive | None = None) -> None:
        self.path = Path(path)
        self.archive = open_archive(path) if archive is None else archive

    @cached_property
    def _listed(self) -> list[str]:
        return [name for name in self.archive.listed() if _is_wanted(name)]

    @cached_property
    def files(self) -> list[str]:
        """Sorted names of files relative to ``path``, with ``/`` between the parts."""
        return sorted(name for name in self._listed if not name.endswith("/"))

    @cached_property
    def folders(self) -> list[str]:
        """Sorted names of folders relative to ``path``; an archive may not list all of its folders."""
        return sorted(name.rstrip("/") for name in self._listed if name.endswith("/"))

    @property
    def images(self) -> list[str]:
        """The files that are images by their names."""
        return [name for name in self.files if is_image(name)]

    def pixels(self, name: str, fit: ImageFit | None = None) -> Tensor:
        """An image in RGB, ``(3, H, W)`` uint8, as :func:`avalanche_f2ocl.datasets.reading.read_image` reads it.

        Raises:
            UnreadableImage: it cannot be read; the message names it.
        """
        try:
            with self.archive.open(name) as file:
                return pil_to_tensor(read_image(file, fit))
        except Exception as error:  # a damaged archive can raise anything
            raise self._unreadable(name, error) from error

    def size(self, name: str) -> tuple[int, int]:
        """Width and height of an upright image, read from its header only; raises the errors of :meth:`pixels`."""
        try:
            with self.archive.open(name) as file:
                return image_size(file)
        except Exception as error:
            raise self._unreadable(name, error) from error

    def _unreadable(self, name: str, error: Exception) -> UnreadableImage:
        plugin = missing_plugin(name) if isinstance(error, UnreadableImage) else None
        reason = f"it needs the package {plugin}" if plugin else str(error) or type(error).__name__
        full = str(self.path / name)
        return UnreadableImage(f"{full!r} cannot be read as an image ({reason})", full)


def normal(name: str) -> str:
    """A name in Unicode's composed form, NFC, since systems write accents in one of two ways.

    Example:
        >>> normal("e\\u0301") == "\\u00e9"
        True
    """
    return unicodedata.normalize("NFC", name)


def _is_wanted(name: str) -> bool:
    parts = PurePosixPath(name).parts
    if not parts or parts[0].startswith("/") or parts[0].endswith(":"):
        return False
    return not any(part.startswith(".") or part.lower() in _CLUTTER for part in parts)
