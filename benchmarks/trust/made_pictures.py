"""Synthetic pictures whose pixels are known."""

import struct
import zlib
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

QUADRANTS = np.array([[[250, 0, 0], [0, 250, 0]], [[0, 0, 250], [250, 250, 0]]], np.uint8)
"""Red and green above blue and yellow."""


def quadrants(width: int = 48, height: int = 32) -> Image.Image:
    """A picture of four plain parts."""
    return Image.fromarray(QUADRANTS).resize((width, height), Image.Resampling.NEAREST)


def written(image: Image.Image, format: str, **options: Any) -> BytesIO:
    """The file of a picture."""
    file = BytesIO()
    image.save(file, format, **options)
    file.seek(0)
    return file


def means(image: Image.Image) -> np.ndarray:
    """Mean colour of each quadrant, ``(2, 2, 3)``, without its margin, where lossy formats mix colours."""
    pixels = np.asarray(image).astype(float)
    height, width = pixels.shape[0] // 2, pixels.shape[1] // 2
    parts = pixels[: 2 * height, : 2 * width].reshape(2, height, 2, width, 3)
    return parts[:, height // 4 : -(height // 4), :, width // 4 : -(width // 4)].mean((1, 3))


def photograph(width: int, height: int) -> Image.Image:
    """A smooth picture like a photograph: waves of several lengths, which differ between colours."""
    y, x = np.mgrid[:height, :width] / 40.0
    waves = [
        np.sin(x * a + 1) + np.sin(y * b) + np.sin((x + y) * a * b / 3) for a, b in ((0.7, 0.3), (0.2, 0.9), (1, 1))
    ]
    return Image.fromarray((np.stack(waves, 2) * 40 + 128).astype(np.uint8))


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    """A picture of random pixels."""
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


def png(width: int, height: int, bits: int, colour: int, rows: list[bytes], *more: tuple[bytes, bytes]) -> BytesIO:
    """A PNG by its specification, also of kinds that Pillow does not write.

    Args:
        width, height: in pixels.
        bits: of a sample.
        colour: 0 grey, 2 red, green and blue, 3 by palette, 4 and 6 the first two with alpha.
        rows: their bytes.
        more: kind and contents of chunks before the pixels.
    """
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    chunks = [(b"IHDR", head), *more, (b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))), (b"IEND", b"")]
    made = [struct.pack(">I", len(d)) + kind + d + struct.pack(">I", zlib.crc32(kind + d)) for kind, d in chunks]
    return BytesIO(b"\x89PNG\r\n\x1a\n" + b"".join(made))


def tiff(pixels: np.ndarray, bits: int, kind: int = 1, photometric: int = 1, order: str = "<", more=()) -> BytesIO:
    """A grey TIFF of one strip by its specification.

    Args:
        pixels: ``(H, W)`` in the byte order ``order``, or bytes of packed rows with their sides in ``more``.
        bits: of a sample.
        kind: 1 unsigned, 2 signed, 3 float.
        photometric: 0 where 0 is white.
        order: ``"<"`` or ``">"``.
        more: tags and their short values.
    """
    data = pixels.tobytes()
    tags = {256: pixels.shape[1], 257: pixels.shape[0], 258: bits, 259: 1, 262: photometric, 273: 8, 277: 1,
            278: pixels.shape[0], 279: len(data), 339: kind} | dict(more)  # fmt: skip
    entries = [struct.pack(order + "HHII", tag, 4, 1, value) for tag, value in sorted(tags.items())]
    first = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8 + len(data) + len(data) % 2)
    return BytesIO(
        first + data + b"\0" * (len(data) % 2) + struct.pack(order + "H", len(entries)) + b"".join(entries) + b"\0" * 4
    )
