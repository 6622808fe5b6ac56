import pickle

import numpy as np
import pytest
import timm.data
from PIL import Image

from avalanche_f2ocl.datasets.reading import read_image
from avalanche_f2ocl.image_fit import ImageFit
from benchmarks.trust.made_pictures import noise, photograph, written


@pytest.mark.parametrize(
    "options, size, place",
    [
        # 224 / 0.9 is 248.9, so 248; 500 * 248 / 375 is 330.7, so 330; half of 330 - 224 and of 248 - 224.
        ({"fit": "crop"}, (500, 375), (330, 248, 53, 12)),
        ({"fit": "crop"}, (375, 500), (248, 330, 12, 53)),
        ({"fit": "auto"}, (375, 500), (248, 330, 12, 53)),
        # 224 / 0.875 is 256; 501 * 256 / 333 is 385.2; half of 385 - 224 is 80.5, which torchvision rounds to even.
        ({"fit": "crop", "crop_pct": 0.875}, (333, 501), (256, 385, 16, 80)),
        ({"fit": "crop", "crop_pct": 1.0}, (500, 375), (298, 224, 37, 0)),
        ({"fit": "crop"}, (100, 100), (248, 248, 12, 12)),
        ({"fit": "auto"}, (100, 100), (224, 224, 0, 0)),
        ({"fit": "crop", "image_size": 10}, (1, 1000), (11, 11000, 0, 5495)),
        ({"fit": "squash"}, (500, 375), (224, 224, 0, 0)),
        # The longer side to 224, the other to 375 * 224 / 500 = 168, with 56 / 2 above.
        ({"fit": "pad"}, (500, 375), (224, 168, 0, -28)),
        ({"fit": "pad"}, (375, 500), (168, 224, -28, 0)),
        ({"fit": "pad", "image_size": 20}, (27, 50), (11, 20, -4, 0)),
        ({"fit": "pad", "image_size": 32}, (1, 100_000), (1, 32, -15, 0)),
        ({"fit": "pad"}, (100, 100), (224, 224, 0, 0)),
    ],
)
def test_places(options, size, place):
    assert ImageFit(**options).place(*size) == place


@pytest.mark.parametrize("fit", ["auto", "crop", "squash", "pad"])
def test_a_square_of_that_size_stays(fit):
    assert ImageFit(image_size=40, fit=fit, crop_pct=0.5).place(40, 40) == (40, 40, 0, 0)


@pytest.mark.parametrize("fit", ["auto", "crop", "squash", "pad"])
def test_the_square_lies_inside_or_is_filled_up(fit):
    for side in (1, 7, 32):
        for width in (1, 2, 3, 31, 32, 33, 500):
            for height in (1, 5, 32, 33):
                for crop_pct in (0.1, 0.875, 1):
                    place = ImageFit(image_size=side, fit=fit, crop_pct=crop_pct).place(width, height)
                    for length, start in ((place.width, place.left), (place.height, place.top)):
                        inside = 0 <= start <= length - side
                        filled = start <= 0 and 0 < length <= side and start + side >= length
                        assert (inside or filled) and (inside or fit == "pad")


@pytest.mark.parametrize(
    "options, error, said",
    [
        ({"image_size": 0}, ValueError, "image_size=0: must be at least 1"),
        ({"image_size": 224.0}, TypeError, "image_size=224.0: must be an int"),
        ({"fit": "stretch"}, ValueError, "fit='stretch': allowed are 'auto', 'crop', 'squash', 'pad'"),
        ({"crop_pct": 0}, ValueError, "crop_pct=0: must be positive"),
        ({"crop_pct": 1.01}, ValueError, "crop_pct=1.01: must be at most 1"),
        ({"crop_pct": "all"}, TypeError, "crop_pct='all': must be a number"),
        ({"interpolation": "nearest"}, ValueError, "interpolation='nearest': allowed are 'bicubic', 'bilinear'"),
        ({"fill": (1, 2)}, ValueError, "fill=(1, 2): must be three ints from 0 to 255"),
        ({"fill": (0, 0, 256)}, ValueError, "fill=(0, 0, 256): must be"),
        ({"fill": (0, 0, 0.5)}, ValueError, "fill=(0, 0, 0.5): must be"),
        ({"fill": 128}, TypeError, "fill=128: must be"),
    ],
)
def test_options_that_are_not_allowed(options, error, said):
    with pytest.raises(error) as caught:
        ImageFit(**options)
    assert said in str(caught.value)


def test_it_goes_to_other_processes_and_compares_by_value():
    fit = ImageFit(image_size=32, fit="pad", fill=(1, 2, 3))
    assert pickle.loads(pickle.dumps(fit)) == fit != ImageFit(image_size=32) and hash(fit) == hash(fit)


def by_timm(image, fit):
    transform = timm.data.create_transform(
        fit.image_size, is_training=False, interpolation=fit.interpolation, crop_pct=fit.crop_pct, normalize=False
    )
    return np.asarray(transform(image)).transpose(1, 2, 0)


@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
@pytest.mark.parametrize("crop_pct", [0.875, 0.9, 1.0])
@pytest.mark.parametrize("size", [(500, 375), (375, 500), (333, 501), (300, 300), (224, 224), (225, 224), (40, 31)])
def test_a_crop_is_timms(size, crop_pct, interpolation):
    fit = ImageFit(fit="crop", crop_pct=crop_pct, interpolation=interpolation)
    picture = noise(*size)
    expected = picture if size == (224, 224) else by_timm(picture, fit)  # a square of that size stays
    assert np.array_equal(read_image(written(picture, "PNG", compress_level=1), fit), expected)


@pytest.mark.parametrize("size", [(3000, 20), (20, 3000), (1, 2000)])
def test_a_crop_of_a_long_strip_is_nearly_timms(size):
    fit = ImageFit(image_size=32, fit="crop")
    picture = photograph(*size)
    difference = np.subtract(read_image(written(picture, "PNG"), fit), by_timm(picture, fit).astype(int))
    assert np.abs(difference).max() <= 4


def test_a_strip_far_longer_takes_no_time_nor_memory():
    for size in ((1, 100_000), (100_000, 1)):
        for how in ("auto", "crop", "squash", "pad"):
            fit = ImageFit(fit=how)
            picture = read_image(written(Image.new("RGB", size, (1, 2, 3)), "PNG"), fit)
            left, top = fit.place(*size)[2:]
            assert picture.size == (224, 224) and picture.getpixel((max(0, -left), max(0, -top))) == (1, 2, 3)


@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_squashed_and_padded(interpolation):
    resample, picture = Image.Resampling[interpolation.upper()], noise(50, 30)
    for size in ((50, 30), (30, 30)):
        picture = noise(*size)
        fit = ImageFit(image_size=20, fit="squash", interpolation=interpolation)
        assert np.array_equal(read_image(written(picture, "PNG"), fit), picture.resize((20, 20), resample))
    fit = ImageFit(image_size=20, fit="pad", interpolation=interpolation, fill=(1, 2, 3))
    wide = np.full((20, 20, 3), (1, 2, 3), np.uint8)
    wide[4:16] = noise(50, 30).resize((20, 12), resample)
    assert np.array_equal(read_image(written(noise(50, 30), "PNG"), fit), wide)
    tall = np.full((20, 20, 3), (1, 2, 3), np.uint8)
    tall[:, 4:15] = noise(27, 50).resize((11, 20), resample)  # 4.5 pixels either side
    assert np.array_equal(read_image(written(noise(27, 50), "PNG"), fit), tall)


def test_auto_leaves_squares_whole_and_crops_the_rest():
    for size, how in (((50, 50), "squash"), ((50, 49), "crop")):
        file = written(noise(*size), "PNG")
        one, other = (read_image(file, ImageFit(image_size=20, fit=fit)) for fit in ("auto", how))
        assert np.array_equal(one, other)
