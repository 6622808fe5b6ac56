import pickle

import pytest

from avalanche_f2ocl.image_fit import ImageFit


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
