"""Reads one image from a file: upright, in RGB, and fitted to a square on request."""

from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import BinaryIO

from PIL import Image, UnidentifiedImageError

from avalanche_f2ocl.datasets.rgb import scale_key, to_rgb
from avalanche_f2ocl.image_fit import ImageFit

DRAFT = 2
"""A JPEG is decoded at 1/2, 1/4 or 1/8 of its size if its sides are still this many times the wanted ones."""

_STRIP = 16
_Box = tuple[float, float, float, float]
_T = Image.Transpose
_LYING = {_T.TRANSPOSE, _T.ROTATE_270, _T.TRANSVERSE, _T.ROTATE_90}
_FROM_RIGHT = {_T.FLIP_LEFT_RIGHT, _T.ROTATE_180, _T.ROTATE_270, _T.TRANSVERSE}
_FROM_BELOW = {_T.FLIP_TOP_BOTTOM, _T.ROTATE_180, _T.TRANSVERSE, _T.ROTATE_90}
_TURNS = dict(enumerate((_T.FLIP_LEFT_RIGHT, _T.ROTATE_180, _T.FLIP_TOP_BOTTOM, _T.TRANSPOSE, _T.ROTATE_270,
                         _T.TRANSVERSE, _T.ROTATE_90), 2))  # fmt: skip
"""Transpositions by the orientation in EXIF data."""
_HEIF = {b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"}
_NOT_PICTURES = {"BUFR", "EPS", "GRIB", "HDF5", "IPTC", "MPEG", "WMF"}
"""Formats that Pillow lists but cannot decode by itself; PostScript would be run as a program."""
_PLUGINS = {"pillow_heif": "register_heif_opener", "pillow_avif": None}
_NEEDS = {".heic": "pillow-heif", ".heif": "pillow-heif", ".hif": "pillow-heif", ".avif": "pillow-avif-plugin"}


class UnreadableImage(ValueError):
    """A file cannot be read as an image.

    Args:
        reason: the reason.
        name: name of the file, if it is known.
    """

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.name = name

    def __reduce__(self):
        return type(self), (str(self), self.name)


def read_image(file: BinaryIO, fit: ImageFit | None = None) -> Image.Image:
    """Reads the picture in a file as a person sees it, in RGB.

    The picture is turned as its EXIF data say. An animation gives its first frame. Colours have 8 bits, and transparent
    pixels lie over white, see :func:`avalanche_f2ocl.datasets.rgb.to_rgb`. Colour profiles are not applied.

    Args:
        file: a file opened for reading bytes.
        fit: how the picture becomes a square; None keeps its size.

    Raises:
        UnreadableImage: the file is damaged, has an unknown format, or has more pixels than Pillow considers safe
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
            return _picture(image, fit, draft=True)
    except Exception as error:  # a hostile file can raise anything
        raise UnreadableImage(_reason(error, file)) from error


def image_size(file: BinaryIO) -> tuple[int, int]:
    """Width and height of the picture that :func:`read_image` gives, from the file's header only.

    Raises:
        UnreadableImage: the file is damaged or has an unknown format.
    """
    try:
        with Image.open(file, formats=_formats()) as image:
            return upright_size(image)
    except Exception as error:
        raise UnreadableImage(_reason(error, file)) from error


def picture(image: Image.Image, fit: ImageFit | None = None) -> Image.Image:
    """The picture that :func:`read_image` gives, from an image that is already open.

    Raises:
        Exception: of any type, if the image's data are damaged.

    Example:
        >>> picture(Image.new("I;16", (6, 4), 65535), ImageFit(image_size=2)).getpixel((0, 0))
        (255, 255, 255)
    """
    return _picture(image, fit, draft=False)  # a draft would change the caller's image


def upright_size(image: Image.Image) -> tuple[int, int]:
    """Width and height of :func:`picture`, without decoding.

    Example:
        >>> upright_size(Image.new("L", (6, 4)))
        (6, 4)
    """
    width, height = image.size
    if image.format == "TIFF":  # depending on its version, Pillow gives the upright size before or after loading
        width, height = image.tag_v2[256], image.tag_v2[257]  # type: ignore[attr-defined]
    if width != height and _TURNS.get(_orientation(image)) in _LYING:
        return height, width
    return width, height


def is_image(name: str) -> bool:
    """Whether a file's name ends like that of an image.

    Example:
        >>> is_image("cat/1.JPG"), is_image("cat/1.heic"), is_image("cat/notes.txt")
        (True, True, False)
    """
    return PurePosixPath(name).suffix.lower() in _suffixes() | _NEEDS.keys()


def missing_plugin(name: str) -> str | None:
    """The package that reads files with this suffix, if it is needed and not installed.

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
    known = {suffix for suffix, name in Image.registered_extensions().items() if name in formats}
    return frozenset(known | {".mpo"})  # Pillow reads it but does not list it


def _orientation(image: Image.Image) -> int:
    with suppress(Exception):  # damaged EXIF data do not make the picture unreadable
        orientation = image.getexif().get(0x0112, 1)
        return int(orientation) if orientation in range(1, 9) else 1
    return 1


def _picture(image: Image.Image, fit: ImageFit | None, draft: bool) -> Image.Image:
    """The picture upright, in RGB and fitted."""
    sides, drafted = image.size, None
    scale_key(image)
    if fit is not None and draft:
        place = fit.place(*sides)
        drafted = image.draft(None, (DRAFT * place.width, DRAFT * place.height))
    image.load()
    turn = _TURNS.get(_orientation(image))
    upright = image if turn is None else image.transpose(turn)
    seen = to_rgb(upright, image)
    if fit is None:
        return seen
    if drafted is None:  # the sides are read again, since some formats turn themselves when they are loaded
        return _fitted(seen, fit, seen.size, (0, 0, *seen.size))
    across, down = drafted[1][2:]  # not integers: the last pixels lie partly outside
    if turn in _LYING:
        sides, (across, down) = sides[::-1], (down, across)
    left = seen.width - across if turn in _FROM_RIGHT else 0
    top = seen.height - down if turn in _FROM_BELOW else 0
    return _fitted(seen, fit, sides, (left, top, left + across, top + down))


def _reason(error: Exception, file: BinaryIO) -> str:
    """A readable reason, since Pillow's message for an unknown file names a Python object."""
    if not isinstance(error, UnidentifiedImageError):
        return f"{type(error).__name__}: {error}"
    with suppress(Exception):
        file.seek(0)
        head = file.read(12)
        if not head:
            return "the file is empty"
        if head.startswith((b"%!PS", b"\xc5\xd0\xd3\xc6")):
            return "it is PostScript, which is a program"
        if head[4:8] == b"ftyp" and head[8:12] in _HEIF and "HEIF" not in Image.OPEN:
            return f"it is HEIF, which needs the package {_NEEDS['.heic']}"
    return "its format is unknown or its header is damaged"


def _fitted(image: Image.Image, fit: ImageFit, sides: tuple[int, int], area: _Box) -> Image.Image:
    """Fits an image to a square.

    Args:
        image: the image in RGB.
        fit: how the image becomes a square.
        sides: width and height of the image in its file.
        area: left, top, right and bottom of the picture in the image.
    """
    side, (width, height, left, top) = fit.image_size, fit.place(*sides)
    resample = Image.Resampling[fit.interpolation.upper()]
    if left < 0 or top < 0:
        square = Image.new("RGB", (side, side), fit.fill)
        square.paste(image.resize((width, height), resample, area), (-left, -top))
        return square
    if width * height > _STRIP * side**2:  # for a long strip, only the part that is kept is computed
        across, down = (area[2] - area[0]) / width, (area[3] - area[1]) / height
        start = area[0] + left * across, area[1] + top * down
        return image.resize((side, side), resample, (*start, start[0] + side * across, start[1] + side * down))
    return image.resize((width, height), resample, area).crop((left, top, left + side, top + side))
