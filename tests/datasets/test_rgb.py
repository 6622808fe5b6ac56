import struct
from io import BytesIO

import numpy as np
import PIL
import pytest
from PIL import Image

from avalanche_f2ocl.datasets import rgb
from avalanche_f2ocl.datasets.reading import UnreadableImage, read_image
from avalanche_f2ocl.datasets.rgb import to_rgb
from benchmarks.trust.made_pictures import png, tiff, written


def row(file):
    """The pixels of the first row."""
    image = read_image(file)
    assert image.mode == "RGB"
    return [image.getpixel((x, 0)) for x in range(image.width)]


def grey(*levels):
    return [(level,) * 3 for level in levels]


SIXTEEN = [0, 128, 256, 32768, 65535]
EIGHT = [0, 0, 1, 128, 255]  # of 16 bits over 257, rounded


def test_grey_of_16_bits():
    assert row(png(5, 1, 16, 0, [struct.pack(">5H", *SIXTEEN)])) == grey(*EIGHT)
    for order in "<>":
        assert row(tiff(np.array([SIXTEEN], order + "u2"), 16, order=order)) == grey(*EIGHT)
    assert row(written(Image.fromarray(np.array([SIXTEEN], np.uint16)), "TIFF")) == grey(*EIGHT)
    assert row(written(Image.fromarray(np.array([SIXTEEN], np.uint16)), "JPEG2000")) == grey(*EIGHT)
    assert row(BytesIO(b"P5 5 1 65535\n" + struct.pack(">5H", *SIXTEEN))) == grey(*EIGHT)


def test_dark_grey_of_16_bits_stays_dark():
    assert row(png(2, 1, 16, 0, [struct.pack(">2H", 100, 200)])) == grey(0, 1)
    assert row(tiff(np.array([[100, 200]], "<u2"), 16)) == grey(0, 1)
    assert row(BytesIO(b"P5 2 1 65535\n" + struct.pack(">2H", 100, 200))) == grey(0, 1)


def test_tiffs_of_12_bits_and_those_where_0_is_white():
    packed = np.frombuffer(bytes([0x00, 0x0F, 0xFF]), np.uint8)[None]  # 0 and 4095
    assert row(tiff(packed, 12, more={256: 2})) == grey(0, 255)
    assert row(tiff(np.array([SIXTEEN], "<u2"), 16, photometric=0)) == grey(*(255 - level for level in EIGHT))
    assert row(tiff(np.array([[0, 10, 255]], np.uint8), 8, photometric=0)) == grey(255, 245, 0)


@pytest.mark.parametrize(
    "levels, read",
    [([0, 0.5, 1], [0, 128, 255]), ([0, 51, 255], [0, 51, 255]), ([0, 257, 65535], [0, 1, 255]), ([0, 0, 0], [0] * 3)],
)
def test_floats_by_the_range_that_holds_them(levels, read):
    picture = Image.fromarray(np.array([levels], np.float32))
    assert row(written(picture, "TIFF")) == grey(*read)
    assert row(written(picture, "PPM")) == grey(*read)  # PFM
    assert row(tiff(np.array([levels], ">f4"), 32, kind=3, order=">")) == grey(*read)


@pytest.mark.parametrize("levels, read", [([0, 1, 255], [0, 1, 255]), ([0, 257, 65535], [0, 1, 255]),
                                          ([0, 2**24, 2**31 - 1], [0, 1, 127])])  # fmt: skip
def test_whole_numbers_of_32_bits_by_the_range_that_holds_them(levels, read):
    assert row(written(Image.fromarray(np.array([levels], np.int32)), "TIFF")) == grey(*read)


@pytest.mark.parametrize(
    "levels, kind",
    [
        ([0, np.nan], "f4"),
        ([np.nan, np.nan], "f4"),
        ([-1, 5], "f4"),
        ([0, np.inf], "f4"),
        ([0, 1e12], "f4"),
        ([-1, 5], "i4"),
    ],
)
def test_levels_that_are_none(levels, kind):
    with pytest.raises(UnreadableImage, match="grey levels reach from"):
        read_image(written(Image.fromarray(np.array([levels], kind)), "TIFF"))


def test_16_bits_in_colour():
    colours = [0x1234, 0xFFFF, 0x8000]
    assert row(png(1, 1, 16, 2, [struct.pack(">3H", *colours)])) == [(0x12, 0xFF, 0x80)]
    assert row(png(2, 1, 16, 4, [struct.pack(">4H", 0x4000, 0xFFFF, 0, 0)])) == grey(64, 255)
    assert row(png(2, 1, 16, 6, [struct.pack(">8H", *colours, 0xFFFF, *colours, 0)])) == [
        (0x12, 0xFF, 0x80),
        (255,) * 3,
    ]


def test_few_bits():
    assert row(png(8, 1, 1, 0, [b"\x55"])) == grey(*[0, 255] * 4)
    assert row(png(4, 1, 2, 0, [b"\x1b"])) == grey(0, 85, 170, 255)
    assert row(written(Image.fromarray(np.array([[True, False]])), "TIFF")) == grey(255, 0)
    assert row(written(Image.fromarray(np.array([[True, False]])), "BMP")) == grey(255, 0)


def test_what_is_transparent_is_white_and_half_of_it_half_so():
    # a share of alpha / 255 of the colour, the rest of white
    la = Image.fromarray(np.array([[[100, 0], [100, 51], [100, 255]]], np.uint8))
    assert row(written(la, "PNG")) == grey(255, 224, 100)
    rgba = np.array([[[200, 0, 100, 0], [200, 0, 100, 51], [200, 0, 100, 255]]], np.uint8)
    for format, options in (("PNG", {}), ("WEBP", {"lossless": True, "exact": True}), ("TIFF", {}), ("TGA", {})):
        assert row(written(Image.fromarray(rgba), format, **options)) == [(255,) * 3, (244, 204, 224), (200, 0, 100)]


def test_large_transparent_pictures_are_the_same_though_they_are_laid_over_white_in_strips(monkeypatch):
    rgba = Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 30, 4), np.uint8))
    for picture in (rgba, rgba.convert("LA"), rgba.convert("P")):
        if picture.mode == "P":
            picture.info["transparency"] = 3
        whole = np.asarray(to_rgb(picture, picture))
        monkeypatch.setattr(rgb, "_STRIP", 100)
        assert np.array_equal(to_rgb(picture, picture), whole) and len(np.unique(whole)) > 1
        monkeypatch.undo()


def test_palettes():
    palette = (b"PLTE", bytes([9, 8, 7, 200, 0, 100]))
    rows = [bytes([0, 1])]
    assert row(png(2, 1, 8, 3, rows, palette)) == [(9, 8, 7), (200, 0, 100)]
    assert row(png(2, 1, 8, 3, rows, palette, (b"tRNS", bytes([255, 51])))) == [(9, 8, 7), (244, 204, 224)]
    assert row(png(2, 1, 8, 3, rows, palette, (b"tRNS", bytes([0])))) == [(255,) * 3, (200, 0, 100)]
    picture = Image.frombytes("P", (2, 1), bytes([0, 1]))
    picture.putpalette([9, 8, 7, 200, 0, 100])
    assert row(written(picture, "GIF", transparency=1)) == [(9, 8, 7), (255,) * 3]
    assert row(written(picture, "GIF")) == row(written(picture, "BMP")) == [(9, 8, 7), (200, 0, 100)]


@pytest.mark.parametrize(
    "bits, colour, rows, key, read",
    [
        (1, 0, b"\x40", (0,), [255, 255]),
        (2, 0, b"\x10", (1,), [0, 255]),
        (4, 0, b"\x3f", (3,), [255, 255]),
        (4, 0, b"\x3f", (15,), [51, 255]),
        (8, 0, bytes([7, 9]), (7,), [255, 9]),
        (16, 0, struct.pack(">2H", 257, 514), (257,), [255, 2]),
        (8, 2, bytes([7, 7, 7, 9, 9, 9]), (7, 7, 7), [255, 9]),
        (16, 2, struct.pack(">6H", *[0x0712] * 3, *[0x0912] * 3), (0x0712,) * 3, [255, 9]),
    ],
)
def test_a_colour_that_a_png_declares_transparent(bits, colour, rows, key, read):
    assert row(png(2, 1, bits, colour, [rows], (b"tRNS", struct.pack(f">{len(key)}H", *key)))) == grey(*read)


def test_printing_colours():
    inks = Image.new("CMYK", (16, 16), (0, 255, 255, 0))  # magenta and yellow: red
    assert row(written(inks, "TIFF"))[0] == (255, 0, 0)
    read = row(written(inks, "JPEG", quality=100))[8]
    assert np.abs(np.subtract(read, (255, 0, 0))).max() <= 2


def test_luma_and_chroma():
    # JFIF: R = Y + 1.402 (Cr - 128), G = Y - 0.344136 (Cb - 128) - 0.714136 (Cr - 128), B = Y + 1.772 (Cb - 128)
    picture = Image.new("YCbCr", (16, 16), (100, 120, 150))
    tiff = [("TIFF", {})] if int(PIL.__version__.split(".")[0]) >= 12 else []  # which older ones cannot read back
    for format, options in (*tiff, ("JPEG", {"quality": 100, "subsampling": 0})):
        assert np.abs(np.subtract(row(written(picture, format, **options))[8], (131, 87, 86))).max() <= 2


def rgb_of(lightness, a, b):
    """Of CIE 1976 under D50, adapted to D65 by Bradford's matrix, as ICC profiles are."""
    along = (lightness + 16) / 116
    parts = [
        f**3 if f > 6 / 29 else 3 * (6 / 29) ** 2 * (f - 4 / 29) for f in (along + a / 500, along, along - b / 200)
    ]
    xyz = np.array(parts) * (0.9642, 1, 0.8249)
    to_linear = [
        [3.1338561, -1.6168667, -0.4906146],
        [-0.9787684, 1.9161415, 0.033454],
        [0.0719453, -0.2289914, 1.4052427],
    ]
    linear = (to_linear @ xyz).clip(0, 1)
    return 255 * np.where(linear > 0.0031308, 1.055 * linear ** (1 / 2.4) - 0.055, 12.92 * linear)


@pytest.mark.parametrize("lab", [(255, 0, 0), (0, 0, 0), (136, 0, 0), (150, 20, 30), (100, -20, 10), (180, -10, -25)])
def test_lab(lab):
    stored = bytes([lab[0], lab[1] % 256, lab[2] % 256])  # the last two are signed
    file = written(Image.frombytes("LAB", (4, 4), stored * 16), "TIFF")
    assert stored * 16 in file.getvalue()
    assert np.abs(row(file)[0] - rgb_of(lab[0] / 2.55, *lab[1:])).max() <= 2
