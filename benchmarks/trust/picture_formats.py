"""Small pictures of four plain parts in many formats and modes, to check that they are read as they were made."""

import warnings
from collections.abc import Callable, Iterator
from io import BytesIO

import numpy as np
from PIL import Image, features

from avalanche_f2ocl.datasets.reading import read_image
from benchmarks.trust.made_pictures import QUADRANTS, means, png, quadrants, tiff, written

SIDES = 48, 32
LEVELS = np.array([[0, 64], [128, 255]], np.uint8)
"""Levels of the grey quadrants."""
ALPHA = np.array([[0, 51], [204, 255]], np.uint8)
TOLERANCE = 4
"""Levels of 255 by which a quadrant's mean may be off, as lossy formats need."""

TURNS = Image.Transpose
AS_STORED = dict(enumerate((TURNS.FLIP_LEFT_RIGHT, TURNS.ROTATE_180, TURNS.FLIP_TOP_BOTTOM, TURNS.TRANSPOSE,
                            TURNS.ROTATE_90, TURNS.TRANSVERSE, TURNS.ROTATE_270), 2))  # fmt: skip
OPTIONS = {"WEBP": {"lossless": True}, "ICO": {"sizes": [SIDES]}, "AVIF": {"quality": 95}, "JPEG": {"quality": 95}}
COLOUR = (
    "JPEG", "MPO", "PNG", "WEBP", "TIFF", "GIF", "BMP", "PPM", "TGA", "ICO", "JPEG2000", "QOI", "SGI", "PCX", "DDS",
    "AVIF",
)  # fmt: skip


def enlarged(levels: np.ndarray) -> np.ndarray:
    """A picture with a quadrant for each of four values."""
    return levels.repeat(SIDES[1] // 2, 0).repeat(SIDES[0] // 2, 1)


def cases() -> Iterator[tuple[str, BytesIO, np.ndarray]]:
    """Yields a description, the file, and the colours of the quadrants ``(2, 2, 3)``."""
    picture, grey = quadrants(*SIDES), np.stack([LEVELS] * 3, 2)
    levels, wide = enlarged(LEVELS), enlarged(LEVELS.astype(np.uint16) * 257)
    for format in COLOUR:
        if format != "AVIF" or features.check("avif"):
            yield f"{format}, RGB", written(picture, format, **OPTIONS.get(format, {})), QUADRANTS
    for format in ("JPEG", "PNG", "WEBP", "TIFF"):
        for orientation, turn in AS_STORED.items():
            exif = Image.Exif()
            exif[0x0112] = orientation
            file = written(picture.transpose(turn), format, exif=exif, **OPTIONS.get(format, {}))
            yield f"{format}, turned as EXIF's orientation {orientation} says", file, QUADRANTS
    for format in ("JPEG", "PNG", "TIFF", "PPM", "BMP"):
        yield f"{format}, 8 bits of grey", written(Image.fromarray(levels), format, **OPTIONS.get(format, {})), grey
    black = np.where(LEVELS > 100, 255, 0).astype(np.uint8)
    for format in ("PNG", "TIFF", "BMP"):
        yield f"{format}, 1 bit", written(Image.fromarray(enlarged(black) > 0), format), np.stack([black] * 3, 2)
    for format in ("PNG", "TIFF", "JPEG2000", "PPM"):
        yield f"{format}, 16 bits of grey", written(Image.fromarray(wide), format), grey
    yield "TIFF, 16 bits of grey, big-endian", tiff(wide.astype(">u2"), 16, order=">"), grey
    yield "TIFF, 16 bits of grey, 0 is white", tiff(wide.astype("<u2"), 16, photometric=0), 255 - grey
    for limit in (1, 255, 65535):
        floats = Image.fromarray((levels / 255 * limit).astype(np.float32))
        yield f"TIFF, floats up to {limit}", written(floats, "TIFF"), grey
        yield f"PFM, floats up to {limit}", written(floats, "PPM"), grey
    yield "TIFF, 32 bits up to 65,535", written(Image.fromarray(wide.astype(np.int32)), "TIFF"), grey
    rows = [row.astype(">u2").repeat(3).tobytes() for row in wide]
    yield "PNG, 16 bits of red, green and blue", png(*SIDES, 16, 2, rows), grey
    share = ALPHA[..., None] / 255
    over_white = QUADRANTS * share + 255 * (1 - share)
    rgba = Image.fromarray(np.dstack([np.asarray(picture), enlarged(ALPHA)]))
    for format in ("PNG", "WEBP", "TIFF", "TGA"):
        options = {"lossless": True, "exact": True} if format == "WEBP" else {}
        yield f"{format}, red, green, blue and alpha", written(rgba, format, **options), over_white
    file = written(Image.fromarray(np.dstack([levels, enlarged(ALPHA)])), "PNG")
    yield "PNG, grey and alpha", file, grey * share + 255 * (1 - share)
    palette = (b"PLTE", QUADRANTS.tobytes())
    indices = [row.tobytes() for row in enlarged(np.arange(4, dtype=np.uint8).reshape(2, 2))]
    yield "PNG, palette", png(*SIDES, 8, 3, indices, palette), QUADRANTS
    yield "PNG, palette and alpha", png(*SIDES, 8, 3, indices, palette, (b"tRNS", ALPHA.tobytes())), over_white
    keyed = QUADRANTS.copy()
    keyed[0, 0] = 255
    colours = [row.tobytes() for row in np.asarray(picture)]
    key = (b"tRNS", bytes([0, 250, 0, 0, 0, 0]))
    yield "PNG, one colour declared transparent", png(*SIDES, 8, 2, colours, key), keyed
    file = written(picture.quantize(4), "GIF", transparency=picture.quantize(4).getpixel((0, 0)))
    yield "GIF, one colour transparent", file, keyed
    inks = picture.convert("CMYK")
    for format in ("JPEG", "TIFF"):
        yield f"{format}, CMYK", written(inks, format, **OPTIONS.get(format, {})), QUADRANTS
    yield "TIFF, YCbCr", written(picture.convert("YCbCr"), "TIFF"), QUADRANTS
    lab = np.array([[(136, 128, 128), (255, 128, 128)], [(0, 128, 128), (69, 128, 128)]], np.uint8)  # 53, 100, 0, 27 %
    file = written(Image.frombytes("LAB", SIDES, (enlarged(lab) ^ np.uint8([0, 128, 128])).tobytes()), "TIFF")
    yield "TIFF, LAB", file, np.stack([np.array([[127, 255], [0, 64]])] * 3, 2)
    for format in ("GIF", "WEBP", "PNG", "TIFF", "MPO"):
        options = {"save_all": True, "append_images": [Image.new("RGB", SIDES)], **OPTIONS.get(format, {})}
        file = written(picture, format, **options)
        yield f"{format}, two pictures in a file", file, QUADRANTS


def plainly(file: BytesIO) -> Image.Image:
    """Reads a picture plainly, as many programs do."""
    with Image.open(file) as image:
        return image.convert("RGB")


def told(read: Callable[[BytesIO], Image.Image], file: BytesIO, known: np.ndarray) -> str:
    """``"right"``, or what is wrong."""
    try:
        picture = read(file)
    except Exception as error:
        return f"not read: {type(error).__name__}"
    if picture.size != SIDES:
        return f"{picture.width} x {picture.height} pixels"
    off = float(np.abs(means(picture) - known).max())
    return "right" if off <= TOLERANCE else f"off by {off:.0f}"


def measure() -> list[dict[str, object]]:
    """A row for each case: the mean that it was made with, the one read, and what is wrong, also when read plainly."""
    rows: list[dict[str, object]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, file, known in cases():
            rows.append({"file": name, "known": round(float(known.mean()), 1)})
            for title, read in (("read", read_image), ("plainly", plainly)):
                outcome = told(read, BytesIO(file.getvalue()), known)
                mean = None if outcome.startswith("not") else float(np.mean(read(BytesIO(file.getvalue()))))
                rows[-1] |= {f"mean {title}": mean and round(mean, 1), title: outcome}
    return rows
