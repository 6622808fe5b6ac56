"""Converts pictures of every mode that Pillow decodes to RGB with 8 bits."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image, ImageCms

BACKGROUND = (255, 255, 255)
"""The colour under transparent pixels, white, as red, green and blue."""

_STRIP = 1 << 22  # pixels
_BITS, _PHOTOMETRIC, _WHITE_IS_ZERO = 258, 262, 0  # tags of TIFF
_KEYS = {"L;2": 85, "L;4": 17, "RGB;16B": 1 / 256}


def scale_key(image: Image.Image) -> None:
    """Scales the colour that a PNG declares transparent to the 8 bits of the pixels; call it before these are loaded.

    Args:
        image: the image as opened; it is changed.
    """
    factor = _KEYS.get(str(image.tile[0][3])) if image.format == "PNG" and image.tile else None  # type: ignore
    key = image.info.get("transparency")
    if factor and isinstance(key, int):
        image.info["transparency"] = int(key * factor)
    elif factor and isinstance(key, tuple):
        image.info["transparency"] = tuple(int(part * factor) for part in key)


def to_rgb(image: Image.Image, opened: Image.Image) -> Image.Image:
    """Converts an image to RGB: transparent pixels lie over :data:`BACKGROUND`, grey of more than 8 bits is scaled.

    White is 65,535 in 16 bits and 4,095 in a TIFF's 12 bits. For floats and 32-bit integers, white is the smallest of
    1 (floats only), 255, 65,535 and 2**32 - 1 that no value exceeds.

    Args:
        image: the image with its pixels loaded, perhaps turned.
        opened: the image that it was made from, whose format and tags are used.

    Raises:
        ValueError: grey levels are negative, not finite, or too large.

    Example:
        >>> grey = Image.fromarray(np.array([[0.5]], np.float32))
        >>> to_rgb(grey, grey).getpixel((0, 0))
        (128, 128, 128)
    """
    if image.mode.startswith("I") or image.mode == "F":
        return _scaled(image, opened)
    if image.mode == "LAB":
        profiles = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        return ImageCms.applyTransform(image, ImageCms.buildTransform(*profiles, "LAB", "RGB"))  # type: ignore
    if image.has_transparency_data:
        return _over_background(image)
    return image if image.mode == "RGB" else image.convert("RGB")


def _over_background(image: Image.Image) -> Image.Image:
    picture, rows = Image.new("RGB", image.size), max(1, _STRIP // image.width)
    for top in range(0, image.height, rows):  # otherwise a large image would be in memory five times
        part = image.crop((0, top, image.width, min(image.height, top + rows)))
        part = part.convert("LA") if part.mode == "La" else part
        below = Image.new("RGBA", part.size, (*BACKGROUND, 255))
        picture.paste(Image.alpha_composite(below, part.convert("RGBA")).convert("RGB"), (0, top))
    return picture


def _scaled(image: Image.Image, opened: Image.Image) -> Image.Image:
    """Scales grey of 16 bits, 32 bits or floats to 8 bits."""
    grey = np.asarray(image)
    low, high = float(grey.min()), float(grey.max())
    if not 0 <= low <= high < 2**32:  # also catches NaN
        raise ValueError(f"grey levels reach from {low:.4g} to {high:.4g}")
    tags: Mapping[int, Any] = getattr(opened, "tag_v2", {})
    if image.mode.startswith("I;16"):
        white = 2 ** min(16, tags.get(_BITS, (16,))[0]) - 1
        table = (np.arange(2**16).clip(0, white) * (255 / white)).round().astype(np.uint8)  # no float for each pixel
        levels = 255 - table[grey] if tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO else table[grey]
    else:
        limits = [1] * (image.mode == "F") + [2**8 - 1, 2**16 - 1]
        white = next((limit for limit in limits if high <= limit), 2**32 - 1)
        white = 2**16 - 1 if image.mode == "I" and opened.format in ("PNG", "PPM") else white
        levels = (grey.astype(np.float64) * (255 / white)).round().astype(np.uint8)
    picture = Image.fromarray(levels).convert("RGB")
    key = image.info.get("transparency")
    if isinstance(key, int):
        picture.paste(BACKGROUND, mask=Image.fromarray(grey == key))
    return picture
