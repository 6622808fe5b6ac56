"""Sources of images: a folder, an archive, or another library's data set."""

from typing import Protocol

from torch import Tensor

from avalanche_f2ocl.image_fit import ImageFit


class Source(Protocol):
    """Reads images by name; it can be sent to other processes."""

    def pixels(self, name: str, fit: ImageFit | None = None) -> Tensor:
        """An image in RGB, ``(3, H, W)`` uint8, as :func:`avalanche_f2ocl.datasets.reading.read_image` reads it.

        Raises:
            UnreadableImage: it cannot be read; the message names it.
        """
        ...

    def size(self, name: str) -> tuple[int, int]:
        """Width and height of an upright image; raises the errors of :meth:`pixels`."""
        ...
