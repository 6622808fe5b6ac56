"""Images of a data set that are accessed by number."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import BinaryIO, TypeVar

from PIL import Image
from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor

from avalanche_f2ocl.datasets.reading import UnreadableImage, image_size, picture, read_image, upright_size
from avalanche_f2ocl.image_fit import ImageFit

T = TypeVar("T")


class NumberedSource(ABC):
    """Reads the images of a data set; ``train[3]`` is the name of the fourth image of its training part.

    Args:
        part: name of the data set in the names of images, for example ``"train"``.
    """

    def __init__(self, part: str) -> None:
        self.part = part

    @abstractmethod
    def open(self, index: int) -> BinaryIO | Image.Image:
        """The file with an image, or the image itself.

        Raises:
            Exception: of any type, if there is no such image.
        """

    def name(self, index: int) -> str:
        """The name of an image."""
        return f"{self.part}[{index}]"

    def pixels(self, name: str, fit: ImageFit | None = None) -> Tensor:
        """An image in RGB, ``(3, H, W)`` uint8, as :func:`avalanche_f2ocl.datasets.reading.read_image` reads it.

        Raises:
            UnreadableImage: it cannot be read; the message names it.
        """
        return self._read(name, lambda file: pil_to_tensor(read_image(file, fit)), lambda i: _pixels(i, fit))

    def size(self, name: str) -> tuple[int, int]:
        """Width and height of an upright image; raises the errors of :meth:`pixels`."""
        return self._read(name, image_size, upright_size)

    def _read(self, name: str, of_file: Callable[[BinaryIO], T], of_image: Callable[[Image.Image], T]) -> T:
        try:
            opened = self.open(int(name[len(self.part) + 1 : -1]))
            if isinstance(opened, Image.Image):
                return of_image(opened)
            with opened as file:
                return of_file(file)
        except Exception as error:  # another library's data set can raise anything
            raise unreadable(name, error) from error


def unreadable(name: str, error: Exception) -> UnreadableImage:
    """The error that names an image of a data set and says why it cannot be read."""
    reason = str(error) if isinstance(error, UnreadableImage) else f"{type(error).__name__}: {error}"
    return UnreadableImage(f"{name} cannot be read as an image ({reason})", name)


def _pixels(image: Image.Image, fit: ImageFit | None) -> Tensor:
    return pil_to_tensor(picture(image, fit))
