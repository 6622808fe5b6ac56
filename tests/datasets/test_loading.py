import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from avalanche_f2ocl import datasets


class Pairs(torch.utils.data.Dataset):
    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def noise(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def test_digits_are_split_by_class_once_and_for_all():
    data, again = datasets.load("digits"), datasets.load("digits")
    assert (len(data.train), len(data.test)) == (1437, 360)
    assert torch.equal(data.train.images, again.train.images)
    counts = torch.bincount(torch.tensor(data.test.targets))
    assert counts.min() >= 33 and counts.max() <= 37
    image, label = data.train[3]
    assert image.shape == (1, 8, 8) and image.dtype == torch.uint8 and type(label) is int
    assert data.train.images.max() == 255 and data.train.images.min() == 0
    together = torch.cat([data.train.images, data.test.images]).flatten(1)
    assert len(together.unique(dim=0)) == 1797


def test_images_kept_per_class_are_fixed_and_nested():
    some, more = (datasets.load("digits", n, n) for n in (5, 9))
    for small, large in ((some.train, more.train), (some.test, more.test)):
        assert torch.bincount(torch.tensor(small.targets)).tolist() == [5] * 10
        kept = {image.numpy().tobytes() for image in large.images}
        assert all(image.numpy().tobytes() in kept for image in small.images)
    assert torch.equal(some.train.images, datasets.load("digits", 5).train.images)


def test_a_class_with_fewer_keeps_all():
    labels = torch.tensor([1, 0, 1, 1])
    assert datasets.keep_per_class(labels, 2, "train").tolist()[0] in (0, 1)
    assert len(datasets.keep_per_class(labels, 2, "train")) == 3
    assert datasets.keep_per_class(labels, None, "train").tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["PIL", "grey PIL", "array", "grey array", "tensor"])
def test_a_pair_of_data_sets(kind):
    array = noise(5, 7, 3)
    image = {
        "PIL": Image.fromarray(array),
        "grey PIL": Image.fromarray(array[..., 0]),
        "array": array,
        "grey array": array[..., 0],
        "tensor": torch.from_numpy(array).permute(2, 0, 1),
    }[kind]
    expected = torch.from_numpy(array[..., :1] if "grey" in kind else array).permute(2, 0, 1)
    data = datasets.load((Pairs((image, 40), (image, 2)), Pairs((image, 2), (image, torch.tensor(40)))))
    assert torch.equal(data.train[0][0], expected) and data.train[0][0].dtype == torch.uint8
    assert data.train.targets == [40, 2] and data.test.targets == [2, 40]
    assert data.class_names == {2: "2", 40: "40"}


def test_float_tensors_in_a_pair_stay_floats():
    part = TensorDataset(torch.rand(4, 3, 5, 5), torch.tensor([0, 1, 0, 1]))
    assert torch.equal(datasets.load([part, part]).train.images, part.tensors[0])


def test_bad_pairs():
    small, large = torch.zeros(3, 4, 4, dtype=torch.uint8), torch.zeros(3, 5, 5, dtype=torch.uint8)
    with pytest.raises(ValueError, match=r"differ in their classes: \[1, 2\]"):
        datasets.load((Pairs((small, 0), (small, 1)), Pairs((small, 0), (small, 2))))
    with pytest.raises(ValueError, match="different shapes"):
        datasets.load((Pairs((small, 0), (large, 0)), Pairs((small, 0))))
    for label in (0.5, 1.0, np.float32(1.7), np.float64(2), torch.tensor(1.7), "1", None):
        with pytest.raises(TypeError, match="label .*: class ids must be integers"):
            datasets.load((Pairs((small, label)), Pairs((small, label))))
    with pytest.raises(ValueError, match="empty"):
        datasets.load((Pairs(), Pairs((small, 0))))


@pytest.mark.parametrize(
    "dataset, error, message",
    [
        ("cifra100", FileNotFoundError, "'cifra100'.*'cifar100', 'imagenet-r', 'digits'"),
        (7, TypeError, "int"),
        ((1, 2, 3), TypeError, "pair"),
    ],
    ids=str,
)
def test_unknown_data(dataset, error, message):
    with pytest.raises(error, match=message):
        datasets.load(dataset)


@pytest.mark.parametrize(
    "option, error", [(dict(train_per_class=0), ValueError), (dict(test_per_class=1.5), TypeError)], ids=str
)
def test_images_per_class_out_of_range(option, error):
    with pytest.raises(error, match=next(iter(option))):
        datasets.load("digits", **option)


def fake_cifar100(train, **_):
    images, labels = noise(6, 32, 32, 3), [0, 1, 2] * 2
    part = Pairs()
    part.data, part.targets, part.classes = images + (not train), labels, ["apple", "bed", "cup"]
    return part


def test_cifar100_comes_from_torchvision(monkeypatch, tmp_path):
    monkeypatch.setattr("torchvision.datasets.CIFAR100", lambda root, train, download: fake_cifar100(train))
    data = datasets.load("cifar100", train_per_class=1, root=tmp_path)
    assert len(data.train) == 3 and len(data.test) == 6 and data.class_names[2] == "cup"
    assert torch.equal(data.test[0][0], torch.from_numpy(noise(6, 32, 32, 3)[0] + 1).permute(2, 0, 1))


def test_cifar100_without_network_says_what_helps(monkeypatch, tmp_path):
    def offline(*args, **kwargs):
        raise RuntimeError("Error downloading")

    monkeypatch.setattr("torchvision.datasets.CIFAR100", offline)
    with pytest.raises(OSError, match="could not be downloaded.*folder or zip"):
        datasets.load("cifar100", root=tmp_path)
