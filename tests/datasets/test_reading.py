import importlib.util
import pickle
import struct
import subprocess
import zlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image, features

from avalanche_f2ocl.datasets import reading
from avalanche_f2ocl.datasets.reading import UnreadableImage, image_size, is_image, missing_plugin, read_image
from avalanche_f2ocl.image_fit import ImageFit
from benchmarks.trust.made_pictures import QUADRANTS, means, noise, photograph, png, quadrants, tiff, written

T = Image.Transpose
AS_STORED = {1: None, 2: T.FLIP_LEFT_RIGHT, 3: T.ROTATE_180, 4: T.FLIP_TOP_BOTTOM, 5: T.TRANSPOSE, 6: T.ROTATE_90,
             7: T.TRANSVERSE, 8: T.ROTATE_270}  # fmt: skip
"""What a camera does to the upright picture that it then marks with an orientation."""

SAVED = {
    "JPEG": {"quality": 95}, "MPO": {"quality": 95}, "PNG": {}, "WEBP": {"lossless": True}, "TIFF": {}, "GIF": {},
    "BMP": {}, "DIB": {}, "PPM": {}, "TGA": {}, "ICO": {"sizes": [(48, 32)]}, "JPEG2000": {}, "QOI": {}, "SGI": {},
    "PCX": {}, "DDS": {}, "IM": {}, "AVIF": {"quality": 95},
}  # fmt: skip
HEIF = importlib.util.find_spec("pillow_heif") is not None
TURNED = ("JPEG", "PNG", "WEBP", "TIFF", "MPO", "AVIF")


def lacking(format):
    Image.init()
    return format not in Image.SAVE or (format == "AVIF" and not features.check("avif"))


def close(image, levels=4):
    return np.abs(means(image) - QUADRANTS).max() <= levels


@pytest.mark.parametrize("format", SAVED)
@pytest.mark.filterwarnings("ignore:IM image format")
def test_formats(format):
    if lacking(format):
        pytest.skip(f"this Pillow does not write {format}")
    file = written(quadrants(), format, **SAVED[format])
    picture = read_image(file)
    assert picture.mode == "RGB" and picture.size == image_size(file) == (48, 32) and close(picture)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", TURNED)
def test_pictures_come_upright(format, orientation):
    if lacking(format):
        pytest.skip(f"this Pillow does not write {format}")
    turn, exif = AS_STORED[orientation], Image.Exif()
    exif[0x0112] = orientation
    stored = quadrants() if turn is None else quadrants().transpose(turn)
    file = written(stored, format, exif=exif, **SAVED[format])
    picture = read_image(file)
    assert picture.size == image_size(file) == (48, 32) and close(picture)
    assert close(read_image(file, ImageFit(image_size=16, fit="squash")), 12)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("order", "<>")
def test_grey_of_16_bits_comes_upright(orientation, order):
    levels = np.array([[0, 257, 514], [771, 1028, 1285]], np.uint16)
    turned = {1: levels, 2: levels[:, ::-1], 3: levels[::-1, ::-1], 4: levels[::-1], 5: levels.T,
              6: np.rot90(levels), 7: levels[::-1, ::-1].T, 8: np.rot90(levels, 3)}[orientation]  # fmt: skip
    file = tiff(np.ascontiguousarray(turned).astype(order + "u2"), 16, order=order, more={274: orientation})
    assert np.asarray(read_image(file))[..., 0].tolist() == [[0, 1, 2], [3, 4, 5]] and image_size(file) == (3, 2)


@pytest.mark.parametrize("exif", [b"Exif\0\0damaged", b"Exif\0\0II*\0\xff\xff\xff\xff",
                                  b"Exif\0\0MM\0*\0\0\0\x08\xff\xff",
                                  b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x63\0\0"])  # fmt: skip
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
@pytest.mark.filterwarnings("ignore:.*EXIF")
def test_damaged_exif_data_do_not_lose_the_picture(format, exif):
    file = written(quadrants(), format, exif=exif, **SAVED[format])
    assert close(read_image(file)) and image_size(file) == (48, 32)


@pytest.mark.filterwarnings("ignore:Tag data larger")
def test_damaged_exif_data_after_the_orientation_leave_the_picture_upright():
    # Orientation 6; then Software, said to be 4 GB long.
    entries = struct.pack(">HHIHxx", 0x0112, 3, 1, 6) + struct.pack(">HHII", 0x0131, 2, 2**32 - 1, 8)
    exif = b"Exif\0\0MM\0*\0\0\0\x08" + struct.pack(">H", 2) + entries + b"\0" * 4
    assert close(read_image(written(quadrants().transpose(T.ROTATE_90), "JPEG", exif=exif, quality=95)))


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "TIFF", "MPO"])
def test_of_several_pictures_the_first(format):
    others = [Image.new("RGB", (48, 32), (v, v, v)) for v in (9, 99)]
    file = written(quadrants(), format, save_all=True, append_images=others, **SAVED[format])
    assert close(read_image(file))


def test_what_is_none():
    good = written(noise(40, 30), "PNG").getvalue()
    for data, said in (
        (b"", "the file is empty"),
        (b"damaged", "format is unknown"),
        (good[:-100], "truncated"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n", "PostScript"),
        (b"\0\0\0\x18ftypheic" + b"\0" * 50, "known" if HEIF else "HEIF, which needs the package pillow-heif"),
        (png(60_000, 60_000, 8, 0, [b""]).getvalue(), "DecompressionBombError"),
    ):
        for read in (read_image, image_size):
            if (read, said) != (image_size, "truncated"):
                with pytest.raises(UnreadableImage, match=said) as caught:
                    read(BytesIO(data))
                assert "BytesIO" not in str(caught.value)
    assert image_size(BytesIO(good[:-100])) == (40, 30)


def test_postscript_is_not_run(monkeypatch):
    def run(*args, **kwargs):
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess, "Popen", run)
    monkeypatch.setattr(subprocess, "check_call", run)
    for name, format in (("picture", "EPS"), ("picture.png", "EPS")):
        with pytest.raises(UnreadableImage, match="PostScript"):
            read_image(written(quadrants(), format))
        assert is_image(name) == name.endswith(".png")


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP"])
@pytest.mark.filterwarnings("ignore:Truncated File Read")
def test_cut_short_no_picture_comes_half(format):
    data = written(noise(40, 30), format).getvalue()
    for length in range(0, len(data) - 30, len(data) // 20):
        with pytest.raises(UnreadableImage):
            read_image(BytesIO(data[:length]))


@pytest.mark.filterwarnings("ignore")
def test_random_bytes_after_the_head_of_each_format():
    random = np.random.default_rng(0)
    for format, options in SAVED.items():
        if lacking(format):
            continue
        data = bytearray(written(noise(48, 32), format, **options).getvalue())
        for _ in range(5):
            spoilt = bytearray(data)
            for place in random.integers(8, len(data), 20):
                spoilt[place] = random.integers(256)
            try:
                assert read_image(BytesIO(spoilt)).mode == "RGB"
            except UnreadableImage:
                pass


def test_an_error_names_its_file_in_another_process():
    error = pickle.loads(pickle.dumps(UnreadableImage("damaged", "cat/1.jpg")))
    assert (str(error), error.name) == ("damaged", "cat/1.jpg") and isinstance(error, ValueError)


@pytest.mark.parametrize("name, is_one", [
    ("a.jpg", True), ("a.JPE", True), ("a.jfif", True), ("a.TIF", True), ("a.Jp2", True), ("a.heic", True),
    ("a.HIF", True), ("a.avif", True), ("a.webp", True), ("a.MPO", True), ("a.pfm", True), ("a.txt", False),
    ("jpg", False),
    ("a.jpg.part", False), ("a.eps", False), ("a.ps", False), ("a.pdf", False), ("a.wmf", False), ("a.mpg", False),
    ("a.svg", False), ("a.jpg/notes", False), (".jpg", False), ("a.h5", False),
])  # fmt: skip
def test_suffixes_of_images(name, is_one):
    assert is_image(name) == is_one


def test_what_another_package_reads():
    assert missing_plugin("a.HEIC") == (None if HEIF else "pillow-heif") and missing_plugin("a.png") is None
    if HEIF:
        import pillow_heif

        file = BytesIO()
        reading._formats()  # which makes it known
        pillow_heif.from_pillow(quadrants()).save(file, quality=95)
        assert close(read_image(file), 8) and image_size(file) == (48, 32)


@pytest.mark.parametrize("size", [(2000, 1500), (1501, 2003)])
@pytest.mark.parametrize("how", ["crop", "pad", "squash"])
def test_a_jpeg_decoded_at_a_part_of_its_size_is_nearly_the_whole(size, how):
    file = written(photograph(*size), "JPEG", quality=90)
    fit = ImageFit(image_size=96, fit=how)
    whole = written(read_image(file), "BMP")
    difference = np.abs(np.subtract(read_image(file, fit), np.asarray(read_image(whole, fit), int)))
    assert difference.mean() < 0.5 and difference.max() <= 4


@pytest.mark.parametrize("orientation", range(1, 9))
def test_what_is_nearly_square_is_no_square_when_decoded_at_a_part_of_its_size(orientation):
    # An eighth of 1201 x 1200 is 151 x 150, and of 1208 x 1201 it is 151 x 151.
    picture, exif, turn = photograph(1208, 1201), Image.Exif(), AS_STORED[orientation]
    exif[0x0112] = orientation
    stored = picture if turn is None else picture.transpose(turn)
    file = written(stored, "JPEG", quality=90, exif=exif)
    fit = ImageFit(image_size=32, crop_pct=0.5)
    whole = written(read_image(file), "BMP")
    difference = np.abs(np.subtract(read_image(file, fit), np.asarray(read_image(whole, fit), int)))
    assert difference.mean() < 0.5 and difference.max() <= 4


def test_a_bomb_of_text_is_refused():
    text = b"zTXt", b"Comment\0\0" + zlib.compress(b"\0" * 2**24)
    with pytest.raises(UnreadableImage, match="TEXT"):
        read_image(png(1, 1, 8, 0, [b"\0"], text))
