import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from avalanche_f2ocl import datasets
from avalanche_f2ocl.datasets.image_files import FilesOnDisk
from avalanche_f2ocl.datasets.image_tensors import ImageTensors


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


@pytest.fixture
def photographs(tmp_path):
    """Two classes, sizes differ."""
    for split, count in (("train", 12), ("test", 5)):
        for name in ("ant", "bee"):
            (tmp_path / split / name).mkdir(parents=True)
            for i in range(count):
                Image.fromarray(noise(20 + i, 30, 3)).save(tmp_path / split / name / f"{i:02d}.png")
    return tmp_path


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("options", [{}, {"fit": "pad", "image_size": 20}, {"train_per_class": 3}], ids=str)
def test_images_on_the_disk_have_the_bits_of_those_in_memory(photographs, options, workers):
    disk = datasets.load(photographs, in_memory=False, workers=workers, **options)
    memory = datasets.load(photographs, in_memory=True, **options)
    assert disk.class_names == memory.class_names
    for ours, theirs in zip(disk[:2], memory[:2], strict=True):
        assert isinstance(ours, FilesOnDisk) and isinstance(theirs, ImageTensors) and ours.targets == theirs.targets
        assert torch.equal(ours.__getitems__(list(range(len(ours)))).images, theirs.images)


def test_where_there_are_many_they_stay_on_the_disk(photographs, monkeypatch):
    images = 34 * 3 * 224 * 224
    for limit, kind in ((images, ImageTensors), (images - 1, FilesOnDisk)):
        monkeypatch.setattr("avalanche_f2ocl.datasets.from_files.IN_MEMORY_BYTES", limit)
        assert all(type(part) is kind for part in datasets.load(photographs)[:2])


@pytest.mark.parametrize(
    "option, error, message",
    [
        (dict(fit="stretch"), ValueError, "fit='stretch'.*'auto', 'crop', 'squash', 'pad'"),
        (dict(in_memory="yes"), TypeError, "in_memory='yes'"),
        (dict(workers=-1), ValueError, "workers=-1"),
        (dict(image_size=0), ValueError, "image_size=0"),
    ],
    ids=str,
)
def test_loading_out_of_range(option, error, message):
    with pytest.raises(error, match=message):
        datasets.load("digits", **option)


def test_what_was_loaded_is_taken_again_on_another_device_and_in_part(photographs):
    data = datasets.load("digits")
    assert datasets.load(data) is data
    there = datasets.load(data.to("meta"))
    assert there.train.device.type == there.test.images.device.type == "meta" and data.train.device.type == "cpu"
    assert there.train.targets == data.train.targets and there.class_names == data.class_names
    few, again = datasets.load(data, train_per_class=3), datasets.load("digits", train_per_class=3)
    assert torch.equal(few.train.images, again.train.images) and few.class_names == data.class_names
    on_disk = datasets.load(photographs, in_memory=False)
    with pytest.raises(TypeError, match="in_memory=True"):
        on_disk.to("meta")
    with pytest.raises(TypeError, match="train_per_class"):
        datasets.load(on_disk, train_per_class=1)
