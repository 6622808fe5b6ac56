"""The same images in a folder and in each other library's form give the same data."""

import pickle

import pytest
import torch
from torch.utils.data import TensorDataset
from torchvision.datasets import FakeData, ImageFolder

from avalanche_f2ocl import class_incremental_stream, shuffled_stream
from avalanche_f2ocl.datasets import load
from avalanche_f2ocl.datasets.pairs import listed, pair_of
from tests.datasets.pictures import grey_16_bits, noise, png, turned_jpeg
from tests.datasets.test_hugging_face import StandIn, made
from tests.datasets.test_web_dataset import samples, tar

CLASSES = ("ant", "bee", "cat")


@pytest.fixture
def folder(tmp_path):
    """Five training and two test images of each class, of several sizes, among them one turned and one in 16 bits."""
    for split, count in (("train", 5), ("test", 2)):
        for class_id, name in enumerate(CLASSES):
            place = tmp_path / "images" / split / name
            place.mkdir(parents=True)
            for i in range(count):
                (place / f"{i}.png").write_bytes(png(noise(4 + i, 6, 10 * class_id + i)))
        (place / "0.png").write_bytes(turned_jpeg()[0])
        (place / "1.png").write_bytes(grey_16_bits()[0])
    return tmp_path / "images"


def files(folder, split):
    """Files and labels, in the order of a folder."""
    paths = [path for name in CLASSES for path in sorted((folder / split / name).iterdir())]
    return [path.read_bytes() for path in paths], [CLASSES.index(path.parent.name) for path in paths]


def hugging_face(folder):
    return tuple(made(StandIn, files(folder, split)[1], files(folder, split)[0]) for split in ("train", "test"))


def web_dataset(folder):
    for split in ("train", "test"):
        members = {}
        for i, (file, label) in enumerate(zip(*files(folder, split), strict=True)):
            members |= {f"{i}.png": file, f"{i}.json": b'{"label": "%s"}' % CLASSES[label].encode()}
        tar(folder.parent / f"{split}.tar", members)
    return folder.parent / "train.tar", folder.parent / "test.tar"


def torchvision(folder):
    return [ImageFolder(folder / split) for split in ("train", "test")]


SOURCES = [hugging_face, web_dataset, torchvision]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("in_memory", [True, False])
def test_the_same_as_from_a_folder(folder, source, in_memory):
    options = dict(train_per_class=4, image_size=5, in_memory=in_memory, workers=0)
    want, got = load(folder, **options), load(source(folder), **options)
    assert got.class_names == want.class_names == dict(enumerate(CLASSES))
    for split in ("train", "test"):
        ours, theirs = getattr(got, split), getattr(want, split)
        assert type(ours) is type(theirs) and ours.targets == theirs.targets
        indices = list(range(len(theirs)))
        assert torch.equal(ours.__getitems__(indices).images, theirs.__getitems__(indices).images)


@pytest.mark.parametrize("source", [web_dataset, torchvision])
def test_processes_read_ahead(folder, source):
    pair = source(folder)
    memory, disk = (load(pair, in_memory=in_memory, image_size=8, workers=1).train for in_memory in (True, False))
    batches = [disk.__getitems__(list(range(start, start + 5))).images for start in range(0, 15, 5)]
    assert torch.equal(torch.cat(batches), memory.images)
    assert pickle.loads(pickle.dumps(disk)).targets == memory.targets


@pytest.mark.parametrize("source", SOURCES)
def test_streams_take_them(folder, source):
    pair = source(folder)
    for make in (
        lambda d: class_incremental_stream(d, groups=3, seed=1, image_size=4),
        lambda d: shuffled_stream(d, 1, image_size=4),
    ):
        want, got = make(folder), make(pair)
        assert got.class_order == want.class_order and got.class_names == want.class_names
        for ours, theirs in zip(got.train_stream, want.train_stream, strict=True):
            assert all(
                torch.equal(a[0], b[0]) and a[1] == b[1] for a, b in zip(ours.dataset, theirs.dataset, strict=True)
            )


def test_a_dict_of_parts_makes_a_stream(folder):
    train, test = hugging_face(folder)
    stream = class_incremental_stream(StandIn.DatasetDict(train=train, validation=test), groups=2, image_size=4)
    assert len(stream.train_stream) == 2 and len(stream.test_stream[0].dataset) == 2 * 2


def test_a_pair_of_two_kinds_is_one_where_both_are_listed(tmp_path):
    train, test = made(StandIn, [0, 1]), tar(tmp_path / "test.tar", samples([1, 0]))
    data = load((train, test))
    assert data.test.targets == [1, 0] and data.class_names == {0: "ant", 1: "bee"}


def test_pairs_that_are_none(tmp_path):
    path, tensors = tar(tmp_path / "0.tar", samples([0])), TensorDataset(torch.zeros(1, 3, 4, 6), torch.tensor([0]))
    for pair in ((path, tensors), (tensors, path)):
        with pytest.raises(TypeError, match=r"one part of the pair is .*0\.tar.*, the other is TensorDataset"):
            load(pair)
    with pytest.raises(TypeError, match="one part of the pair is Rows, the other is TensorDataset"):
        load((made(StandIn, [0]), tensors))
    with pytest.raises(TypeError, match="dataset is dict: must be a name, a path, or a pair"):
        load({"train": tensors, "test": tensors})
    with pytest.raises(TypeError, match="dataset is Rows: must be a name, a path, or a pair"):
        load(made(StandIn, [0]))


def test_others_are_left_to_be_read_item_by_item():
    tensors = TensorDataset(torch.zeros(1, 3, 4, 6), torch.tensor([0]))
    assert pair_of([tensors, tensors]) == (tensors, tensors) and listed((tensors, tensors)) is None
    images = FakeData(1, (3, 4, 6), 1)
    assert listed((images, tensors)) is None
    assert load((images, [(torch.zeros(3, 4, 6, dtype=torch.uint8), 0)])).train.images.shape == (1, 3, 4, 6)
