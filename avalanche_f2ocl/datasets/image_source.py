"""The images of a folder or zip."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from zipfile import BadZipFile, ZipFile

from PIL import Image
from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


class ImageSource:
    """Lists what is in a folder or zip, three levels deep, and decodes images out of it.

    Args:
        path: folder or zip.

    Raises:
        FileNotFoundError: no such path.
        ValueError: a file that is no zip.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            self._open: Callable[[str], BinaryIO] = lambda name: (self.path / name).open("rb")
            self._listed = self._walked
        elif self.path.is_file():
            try:
                archive = ZipFile(self.path)
            except BadZipFile as error:
                raise ValueError(f"{str(path)!r} is neither a folder nor a zip of images") from error
            self._open = lambda name: BytesIO(archive.read(name))
            self._listed = archive.namelist
        else:
            raise FileNotFoundError(f"no such folder or zip: {str(path)!r}")

    def _walked(self) -> list[str]:
        # Not rglob: it passes over folders that are links.
        found = [p for depth in ("*", "*/*", "*/*/*") for p in self.path.glob(depth)]
        return [p.relative_to(self.path).as_posix() + "/" * p.is_dir() for p in found]

    @cached_property
    def files(self) -> list[str]:
        """Names relative to ``path``, with ``/`` between the parts, sorted."""
        names = (name for name in self._listed() if not name.endswith("/"))
        return sorted(name for name in names if ".." not in PurePosixPath(name).parts)

    @cached_property
    def folders(self) -> list[str]:
        """The same for folders, those of a zip only where it lists them."""
        return sorted(name.rstrip("/") for name in self._listed() if name.endswith("/"))

    @property
    def images(self) -> list[str]:
        """The files that are images by their names."""
        return [name for name in self.files if is_image(name)]

    def pixels(self, name: str, image_size: int | None = None) -> Tensor:
        """An image in RGB, ``(3, H, W)`` uint8, resized to a square of ``image_size`` pixels a side if given (bicubic).

        Raises:
            ValueError: a file that is no image; the message names it.
        """
        with self.image(name) as image:
            image = image.convert("RGB")
            if image_size is not None:
                image = image.resize((image_size, image_size), Image.Resampling.BICUBIC)
            return pil_to_tensor(image)

    @contextmanager
    def image(self, name: str) -> Iterator[Image.Image]:
        """An image as Pillow opens it, its pixels not read yet; raises as :meth:`pixels`."""
        try:
            with self._open(name) as file, Image.open(file) as image:
                yield image
        except (OSError, BadZipFile) as error:
            raise ValueError(f"{str(self.path)!r}: {name} is no image that can be read ({error})") from error


def is_image(name: str) -> bool:
    """Whether a file's name ends like an image's.

    Example:
        >>> is_image("cat/1.JPG"), is_image("cat/notes.txt")
        (True, False)
    """
    return name.lower().endswith(SUFFIXES)
