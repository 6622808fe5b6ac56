from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from avalanche_f2ocl.datasets.numbered import NumberedSource
from avalanche_f2ocl.datasets.reading import UnreadableImage
from avalanche_f2ocl.image_fit import ImageFit
from tests.datasets.pictures import grey_16_bits, noise, png, turned_jpeg


class Source(NumberedSource):
    def __init__(self, *opened):
        super().__init__("train")
        self.opened = opened

    def open(self, index):
        return self.opened[index]


@pytest.mark.parametrize("opened", [BytesIO, lambda data: Image.open(BytesIO(data))], ids=["file", "image"])
@pytest.mark.parametrize("made", [turned_jpeg, grey_16_bits])
def test_files_and_open_images_are_seen_alike(opened, made):
    data, seen = made()
    assert np.array_equal(Source(opened(data)).pixels("train[0]"), seen)
    assert Source(opened(data)).size("train[0]") == seen.shape[:0:-1]


def test_an_open_image_is_fitted_and_left_as_it_is():
    array = np.full((4, 6, 4), 0, dtype=np.uint8)
    image = Image.fromarray(array)
    source = Source(image)
    assert source.pixels("train[0]", ImageFit(image_size=2)).unique().tolist() == [255]  # transparent, over white
    assert image.mode == "RGBA" and np.array_equal(np.asarray(image), array)


def test_names_tell_part_and_number():
    source = Source(*[BytesIO(png(noise(4, 6, seed))) for seed in range(12)])
    assert source.name(11) == "train[11]"
    assert np.array_equal(source.pixels("train[11]"), noise(4, 6, 11).transpose(2, 0, 1))


@pytest.mark.parametrize("ask", ["pixels", "size"])
def test_what_cannot_be_read_is_named(ask):
    source = Source(BytesIO(b"no image"))
    for name, reason in (("train[0]", "its format is unknown"), ("train[7]", "IndexError")):
        with pytest.raises(
            UnreadableImage, match=rf"train\[{name[-2]}\] cannot be read as an image \({reason}"
        ) as error:
            getattr(source, ask)(name)
        assert error.value.name == name
