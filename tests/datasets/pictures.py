"""Image files in memory, and what is to be seen in them."""

from io import BytesIO

import numpy as np
from PIL import Image


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def png(array: np.ndarray) -> bytes:
    file = BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def turned_jpeg() -> tuple[bytes, np.ndarray]:
    """A file of 6 x 4 pixels whose EXIF data tell to turn it to the right, and what is then seen, (3, 6, 4)."""
    file, exif = BytesIO(), Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(noise(4, 6)).save(file, "JPEG", exif=exif)
    lying = np.asarray(Image.open(BytesIO(file.getvalue())))
    assert lying.shape == (4, 6, 3)
    return file.getvalue(), np.rot90(lying, -1).transpose(2, 0, 1)


def grey_16_bits() -> tuple[bytes, np.ndarray]:
    """A PNG, and its grey levels in 8 bits, (3, 4, 6)."""
    levels = np.random.default_rng(1).integers(0, 2**16, (4, 6)).astype(np.uint16)
    return png(levels), np.repeat((levels / 257).round().astype(np.uint8)[None], 3, 0)
