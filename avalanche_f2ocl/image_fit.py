"""How an image of any size becomes the backbone's square: sizes and positions, for Pillow and for tensors."""

from dataclasses import dataclass
from math import floor
from typing import NamedTuple

from avalanche_f2ocl.arguments import check_positive, check_positive_int
from avalanche_f2ocl.options import Fit, Interpolation, Options


class Placement(NamedTuple):
    """How an image is resized, and where the square lies in it.

    Attributes:
        width, height: size in pixels that the image is resized to.
        left, top: position of the square in the resized image, in pixels; negative where the square is larger and the
            rest is filled.
    """

    width: int
    height: int
    left: int
    top: int


@dataclass(frozen=True)
class ImageFit(Options):
    """How an image is brought to a square of ``image_size`` pixels a side.

    Args:
        image_size: side S of the square.
        fit: ``"crop"``, as timm evaluates: the shorter side is resized to S / ``crop_pct`` and the centre is cut out;
            ``"squash"``, both sides are resized to S; ``"pad"``, the longer side is resized to S and the rest is
            filled; ``"auto"``, crop, except that square images are resized whole, since thumbnails such as CIFAR's and
            images fitted before have no margin to cut off. A square of S pixels always stays as it is.
        crop_pct: share of the shorter side that a crop keeps, in (0, 1].
        interpolation: ``"bicubic"`` or ``"bilinear"``, both antialiased.
        fill: red, green and blue of the filled part, 0 to 255.

    The defaults are those of the default backbone, ``vit_base_patch16_224.augreg_in21k``.

    Raises:
        TypeError, ValueError: an option that is not allowed.

    Example:
        >>> ImageFit().place(500, 375)
        Placement(width=330, height=248, left=53, top=12)
        >>> ImageFit(fit="pad").place(500, 375)
        Placement(width=224, height=168, left=0, top=-28)
    """

    image_size: int = 224
    fit: Fit = "auto"
    crop_pct: float = 0.9
    interpolation: Interpolation = "bicubic"
    fill: tuple[int, int, int] = (128, 128, 128)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive_int("image_size", self.image_size)
        check_positive("crop_pct", self.crop_pct)
        if self.crop_pct > 1:
            raise ValueError(f"crop_pct={self.crop_pct!r}: must be at most 1")
        fill = self.fill
        if not (isinstance(fill, tuple) and len(fill) == 3 and all(type(c) is int and 0 <= c <= 255 for c in fill)):
            error = ValueError if isinstance(fill, tuple) else TypeError
            raise error(f"fill={fill!r}: must be three ints from 0 to 255, in a tuple")

    def place(self, width: int, height: int) -> Placement:
        """How an image of ``width`` by ``height`` pixels is resized, and where the square lies in it.

        Example:
            >>> ImageFit(fit="squash").place(500, 375)
            Placement(width=224, height=224, left=0, top=0)
        """
        side, whole = self.image_size, self.fit == "squash" or (self.fit == "auto" and width == height)
        if whole or width == height == side:
            return Placement(side, side, 0, 0)
        if self.fit == "pad":
            longer = max(width, height)
            new_width, new_height = (max(1, round(side * own / longer)) for own in (width, height))
            return Placement(new_width, new_height, -((side - new_width) // 2), -((side - new_height) // 2))
        # The same rounding as in torchvision's Resize and CenterCrop, which timm uses.
        shorter = floor(side / self.crop_pct)
        new_width = shorter if width <= height else int(shorter * width / height)
        new_height = shorter if height <= width else int(shorter * height / width)
        return Placement(new_width, new_height, round((new_width - side) / 2), round((new_height - side) / 2))
