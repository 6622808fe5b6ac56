"""One image out of a file: upright, in RGB, fitted to a square where that is asked for."""

from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageCms, ImageOps

from avalanche_f2ocl.image_fit import ImageFit

BACKGROUND = (255, 255, 255)
"""Red, green and blue of what lies under transparent pixels: white."""

DRAFT = 2
"""A JPEG is decoded at a half, a quarter or an eighth of its size where that leaves so many times the wanted pixels."""

_STRIP = 16
_NOT_PICTURES = {"BUFR", "EPS", "GRIB", "HDF5", "IPTC", "MPEG", "WMF"}
"""Formats that Pillow names but cannot decode by itself; PostScript would be run as a program."""
_PLUGINS = {"pillow_heif": "register_heif_opener", "pillow_avif": None}
_NEEDS = {".heic": "pillow-heif", ".heif": "pillow-heif", ".hif": "pillow-heif", ".avif": "pillow-avif-plugin"}


class UnreadableImage(ValueError):
    """A file that is no image that can be read.

    Args:
        reason: why.
        name: of the file, where it is known.
    """

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.name = name

    def __reduce__(self):
        return type(self), (str(self), self.name)


def read_image(file: BinaryIO, fit: ImageFit | None = None) -> Image.Image:
    """The picture of a file as a person sees it, in RGB.

    Turned as its EXIF data say; transparent pixels over :data:`BACKGROUND`; 16 bits scaled to 8; floats and 32-bit
    integers scaled from the smallest of 1 (floats only), 255, 65,535 and 2**32 - 1 that holds them; of an animation
    the first frame. Colour profiles are not applied.

    Args:
        file: opened for reading bytes.
        fit: to a square; None keeps the size.

    Raises:
        UnreadableImage: a damaged file, a format that is not known, or more pixels than Pillow takes for safe
            (``2 * PIL.Image.MAX_IMAGE_PIXELS``).

    Example:
        >>> from io import BytesIO
        >>> file = BytesIO()
        >>> Image.new("LA", (6, 4), (0, 0)).save(file, "PNG")
        >>> read_image(file, ImageFit(image_size=2)).getpixel((0, 0))
        (255, 255, 255)
    """
    try:
        with Image.open(file, formats=_formats()) as image:
            if fit is not None:
                place = fit.place(*image.size)
                image.draft(None, (DRAFT * place.width, DRAFT * place.height))
            return picture(image, fit)
    except Exception as error:  # a hostile file can raise anything
        raise UnreadableImage(f"{type(error).__name__}: {error}") from error


def image_size(file: BinaryIO) -> tuple[int, int]:
    """Width and height of :func:`read_image`, from the file's head alone.

    Raises:
        UnreadableImage: as there.
    """
    try:
        with Image.open(file, formats=_formats()) as image:
            return upright_size(image)
    except Exception as error:
        raise UnreadableImage(f"{type(error).__name__}: {error}") from error


def picture(image: Image.Image, fit: ImageFit | None = None) -> Image.Image:
    """What :func:`read_image` makes of a file, of an image that is open already.

    Raises:
        Exception: of any type, where its data are damaged.

    Example:
        >>> picture(Image.new("I;16", (6, 4), 65535), ImageFit(image_size=2)).getpixel((0, 0))
        (255, 255, 255)
    """
    return _fitted(_rgb(_upright(image)), fit)


def upright_size(image: Image.Image) -> tuple[int, int]:
    """Width and height of :func:`picture`, without decoding.

    Example:
        >>> upright_size(Image.new("L", (6, 4)))
        (6, 4)
    """
    width, height = image.size
    return (height, width) if _orientation(image) >= 5 else (width, height)


def is_image(name: str) -> bool:
    """Whether a file's name ends like that of an image.

    Example:
        >>> is_image("cat/1.JPG"), is_image("cat/1.heic"), is_image("cat/notes.txt")
        (True, True, False)
    """
    return PurePosixPath(name).suffix.lower() in _suffixes() | _NEEDS.keys()


def missing_plugin(name: str) -> str | None:
    """The package that reads files of this suffix, where it is not installed.

    Example:
        >>> missing_plugin("cat/1.jpg") is None
        True
    """
    suffix = PurePosixPath(name).suffix.lower()
    return None if suffix in _suffixes() else _NEEDS.get(suffix)


@cache
def _formats() -> tuple[str, ...]:
    Image.init()
    for name, register in _PLUGINS.items():
        with suppress(ImportError):
            module = import_module(name)
            if register is not None:
                getattr(module, register)()
    return tuple(name for name in Image.OPEN if name not in _NOT_PICTURES)


@cache
def _suffixes() -> frozenset[str]:
    formats = _formats()
    return frozenset(suffix for suffix, name in Image.registered_extensions().items() if name in formats)


def _orientation(image: Image.Image) -> int:
    with suppress(Exception):  # damaged EXIF data are no reason to lose the picture
        orientation = image.getexif().get(0x0112, 1)
        return orientation if orientation in range(1, 9) else 1
    return 1


def _upright(image: Image.Image) -> Image.Image:
    return ImageOps.exif_transpose(image) if _orientation(image) > 1 else image


def _rgb(image: Image.Image) -> Image.Image:
    image.load()
    if image.mode.startswith("I") or image.mode == "F":
        return _scaled(image).convert("RGB")
    if image.mode == "LAB":
        profiles = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        return ImageCms.applyTransform(image, ImageCms.buildTransform(*profiles, "LAB", "RGB"))  # type: ignore
    if image.has_transparency_data:
        image = image.convert("LA") if image.mode == "La" else image
        above = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, (*BACKGROUND, 255)), above).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def _scaled(image: Image.Image) -> Image.Image:
    """Grey of 16 bits, 32 bits or floats to 8 bits."""
    grey = np.asarray(image).astype(np.float64)
    low, high = grey.min(), grey.max()
    if not (low >= 0 and high < 2**32):  # also where one of them is NaN
        raise ValueError(f"grey levels reach from {low:.4g} to {high:.4g}")
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        white = 2**16 - 1
    else:
        ranges = [1] * (image.mode == "F") + [2**8 - 1, 2**16 - 1, 2**32 - 1]
        white = next(limit for limit in ranges if high <= limit)
    return Image.fromarray((grey * (255 / white)).round().astype(np.uint8))


def _fitted(image: Image.Image, fit: ImageFit | None) -> Image.Image:
    if fit is None:
        return image
    side, (width, height, left, top) = fit.image_size, fit.place(*image.size)
    resample = Image.Resampling[fit.interpolation.upper()]
    if left < 0 or top < 0:
        square = Image.new("RGB", (side, side), fit.fill)
        square.paste(image.resize((width, height), resample), (-left, -top))
        return square
    if width * height > _STRIP * side**2:  # of a long strip, only what is kept is computed
        across, down = image.width / width, image.height / height
        box = (left * across, top * down, (left + side) * across, (top + side) * down)
        return image.resize((side, side), resample, box)
    return image.resize((width, height), resample).crop((left, top, left + side, top + side))
