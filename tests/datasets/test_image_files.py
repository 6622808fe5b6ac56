"""What comes from the disk is what would have been in memory."""

import copy
import multiprocessing
import pickle

import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from avalanche_f2ocl.datasets.class_folders import decode_all
from avalanche_f2ocl.datasets.image_files import FilesOnDisk
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.image_tensors import ImageTensors
from avalanche_f2ocl.datasets.reading import UnreadableImage
from avalanche_f2ocl.image_fit import ImageFit

FIT = ImageFit(6)


@pytest.fixture
def files(tmp_path):
    for i in range(40):
        Image.linear_gradient("L").resize((20 + i, 30)).save(tmp_path / f"{i:02d}.png")
    return [(ImageSource(tmp_path), f"{i:02d}.png") for i in range(40)]


@pytest.fixture(params=[0, 2])
def both(files, request):
    labels = torch.arange(40) % 7
    return FilesOnDisk(files, labels, FIT, request.param), ImageTensors(decode_all(files, FIT), labels)


def same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one, other) and one.dtype == other.dtype


def test_mini_batches_in_order(both):
    disk, memory = both
    assert len(disk) == 40 and disk.targets == memory.targets
    options = {"batch_size": 9, "collate_fn": disk.collate_fn}
    for one, other in zip(DataLoader(disk, **options), DataLoader(memory, **options), strict=True):
        same(one, other)
    assert not multiprocessing.active_children()


def test_any_images_in_any_order(both):
    disk, memory = both
    for indices in ([3, 4, 5], [6, 7], [8], [2, 9, 5], [9, 10], [11, 12], [39], [0, 1], [2], [2], [30, 31]):
        ours, theirs = disk.__getitems__(indices), memory.__getitems__(indices)
        same((ours.images, ours.labels), (theirs.images, theirs.labels))
    image, label = disk[5]
    same([image], [memory[5][0]])
    assert label == memory[5][1]


def test_they_are_decoded_ahead_where_they_are_asked_for_in_order(files):
    disk = FilesOnDisk(files, torch.zeros(40, dtype=torch.long), FIT, workers=1)
    disk.__getitems__([5, 6])
    assert not multiprocessing.active_children()  # that could be anything
    disk.__getitems__([7, 8])
    assert multiprocessing.active_children()
    disk.__getitems__([20])
    assert not multiprocessing.active_children()


def test_processes_of_a_data_loader_decode_by_themselves(files):
    labels = torch.arange(40)
    disk = FilesOnDisk(files, labels, FIT, workers=2)
    disk.__getitems__([0])
    loader = DataLoader(disk, batch_size=9, num_workers=1, collate_fn=disk.collate_fn)
    images = torch.cat([images for images, _ in loader])
    assert torch.equal(images, decode_all(files, FIT))


def test_arranged(both):
    disk, memory = both
    order = torch.tensor([7, 0, 39])
    part = disk.arranged(order)
    same((part.__getitems__([0, 1, 2]).images, part.labels), (memory.images[order], memory.labels[order]))


@pytest.mark.parametrize("workers", [0, 1])
def test_an_image_that_cannot_be_read_is_named(files, workers):
    (files[0][0].path / "03.png").write_bytes(b"damaged")
    disk = FilesOnDisk(files, torch.zeros(40, dtype=torch.long), FIT, workers)
    disk.__getitems__([0, 1])
    with pytest.raises(UnreadableImage, match=r"03\.png"):
        disk.__getitems__([2, 3])
    assert disk.__getitems__([4, 5]).images.shape == (2, 3, 6, 6)  # and one may go on


def test_copies_share_no_processes(files):
    disk = FilesOnDisk(files, torch.arange(40), FIT, workers=1)
    disk.__getitems__([0, 1])
    for other in (copy.copy(disk), pickle.loads(pickle.dumps(disk))):
        assert torch.equal(other.__getitems__([2, 3]).images, decode_all(files[2:4], FIT))
    assert torch.equal(disk.__getitems__([2, 3]).images, decode_all(files[2:4], FIT))
