from io import BytesIO

import numpy as np
from PIL import Image

from benchmarks.trust.made_pictures import QUADRANTS, quadrants, written
from benchmarks.trust.picture_formats import cases, measure, told


def test_every_kind_is_read_as_it_was_made():
    rows = measure()
    assert len(rows) > 60 and len({row["file"] for row in rows}) == len(rows)
    assert [row["file"] for row in rows if row["read"] != "right"] == []
    # Lossless formats without margins: the mean of all pixels is the one that it was made with.
    assert all(abs(row["mean read"] - row["known"]) < 1 for row in rows)
    assert sum(row["plainly"] == "right" for row in rows) < len(rows) - 20


def test_what_is_wrong_is_seen():
    file = written(quadrants(), "PNG")
    assert told(lambda file: Image.open(file).transpose(Image.Transpose.ROTATE_180), file, QUADRANTS) == "off by 250"
    assert told(lambda file: Image.new("RGB", (5, 4)), file, QUADRANTS) == "5 x 4 pixels"
    assert told(Image.open, BytesIO(b"damaged"), QUADRANTS) == "not read: UnidentifiedImageError"
    assert told(Image.open, file, QUADRANTS + np.array(4.0)) == "right"


def test_means_that_are_known_are_those_of_pixels():
    known = {name: colours for name, _, colours in cases()}
    assert known["PNG, RGB"].mean() == 1250 / 12 and known["TIFF, 16 bits of grey"].mean() == 447 / 4
    # alpha 0, 51, 204 and 255 of red, green, blue and yellow over white
    assert known["PNG, red, green, blue and alpha"].reshape(4, 3).round().tolist() == [
        [255, 255, 255], [204, 254, 204], [51, 51, 251], [250, 250, 0]
    ]  # fmt: skip
