import pytest
import torch

from avalanche_f2ocl.checks import check_images, check_labels

GOOD = torch.zeros(2, 3, 8, 8)


@pytest.mark.parametrize(
    "images",
    [GOOD, GOOD.byte() + 255, GOOD[:, :1], GOOD.half(), GOOD.double() + 1, torch.zeros(1, 1, 1, 1)],
    ids=lambda t: f"{t.dtype}-{tuple(t.shape)}",
)
def test_good_images(images):
    check_images(images)


@pytest.mark.parametrize(
    "images, error, message",
    [
        ([[1.0]], TypeError, "list"),
        (GOOD[0], ValueError, r"shape \(3, 8, 8\).*\(B, C, H, W\)"),
        (GOOD[:, :2], ValueError, "2 channels"),
        (GOOD.permute(0, 2, 3, 1), ValueError, "8 channels"),
        (GOOD[:0], ValueError, "empty"),
        (GOOD.int(), TypeError, "int32.*uint8"),
        (GOOD + float("nan"), ValueError, "NaN or infinite"),
        (GOOD.index_put((torch.tensor(1),) * 4, torch.tensor(float("inf"))), ValueError, "NaN or infinite"),
        (GOOD - 0.1, ValueError, r"from -0\.1 to -0\.1.*inputs='normalised'"),
        (GOOD + 255, ValueError, "from 255 to 255.*inputs='normalised'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_images(images, error, message):
    with pytest.raises(error, match=message):
        check_images(images)


def test_normalised_images():
    check_images(GOOD - 3, inputs="normalised", image_size=8)
    with pytest.raises(ValueError, match=r"exactly \(B, 3, 16, 16\)"):
        check_images(GOOD, inputs="normalised", image_size=16)
    with pytest.raises(ValueError, match="exactly"):
        check_images(GOOD[:, :1], inputs="normalised", image_size=8)
    with pytest.raises(TypeError, match="floats only"):
        check_images(GOOD.byte(), inputs="normalised", image_size=8)
    with pytest.raises(ValueError, match="NaN"):
        check_images(GOOD + float("nan"), inputs="normalised", image_size=8)


@pytest.mark.parametrize("labels", [[1, -3], torch.tensor([1, -3]), torch.tensor([1, -3], dtype=torch.int8)])
def test_good_labels(labels):
    checked = check_labels(labels, 2)
    assert checked.tolist() == [1, -3] and checked.dtype == torch.int64


@pytest.mark.parametrize(
    "labels, error, message",
    [
        ([0.0, 1.0], TypeError, "float32.*integers"),
        (torch.tensor([True, False]), TypeError, "bool"),
        ([1], ValueError, r"\(1,\).*\(2,\)"),
        ([[1], [2]], ValueError, r"\(2, 1\)"),
        (3, ValueError, r"\(\)"),
    ],
)
def test_bad_labels(labels, error, message):
    with pytest.raises(error, match=message):
        check_labels(labels, 2)
