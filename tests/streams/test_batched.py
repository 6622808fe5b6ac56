"""A mini-batch fetched by one index is the one that is fetched image by image."""

import pytest
import torch
from avalanche.benchmarks.utils import DataAttribute, as_classification_dataset, as_taskaware_classification_dataset
from torch.utils.data import DataLoader, Subset, default_collate

from avalanche_f2ocl.datasets.image_tensors import ImageTensors, Samples, collate
from avalanche_f2ocl.streams.batched import BatchedDataset


@pytest.fixture
def tensors():
    return ImageTensors(torch.randint(0, 256, (20, 3, 4, 4), dtype=torch.uint8), torch.arange(20) % 7)


def forms(data):
    """What can be made of a dataset."""
    yield data
    yield data.subset(list(range(3, 15))).subset([5, 0, 9, 2])
    yield data.concat(data.subset([1, 2]))
    yield data.eval()
    yield data.replace_current_transform_group(lambda image: image.flip(-1))
    yield data.replace_current_transform_group(lambda image: image.flip(-1)).freeze_transforms()
    yield data.update_data_attribute("number", DataAttribute(list(range(20)), "number", use_in_getitem=True))
    yield as_taskaware_classification_dataset(data)


@pytest.mark.parametrize("form", range(8))
@pytest.mark.parametrize("own_collate", [True, False])
def test_mini_batches_are_avalanches(tensors, form, own_collate):
    ours, theirs = (
        list(forms(data))[form] for data in (BatchedDataset.of(tensors), as_classification_dataset(tensors))
    )
    options = {"batch_size": 3, "collate_fn": ours.collate_fn if own_collate else None}
    got = list(DataLoader(ours, **options))
    want = list(DataLoader([theirs[i] for i in range(len(theirs))], batch_size=3))
    assert len(got) == len(want) and [type(part) for part in got] == [type(part) for part in want]
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_images_in_memory_are_fetched_together(tensors):
    data = BatchedDataset.of(tensors).subset([4, 2, 9]).eval()
    assert isinstance(data.__getitems__([0, 2]), Samples)
    assert isinstance(data.replace_current_transform_group(torch.neg).__getitems__([0, 2]), list)


def test_a_part_made_by_torch_takes_torchs_own_collate(tensors):
    [(images, labels)] = DataLoader(Subset(BatchedDataset.of(tensors), [4, 2]), batch_size=2)
    assert torch.equal(images, tensors.images[[4, 2]]) and labels.tolist() == [4, 2]


def test_samples_read_one_by_one_are_items(tensors):
    samples = tensors.__getitems__([3, 8])
    assert len(samples) == 2 and samples[1][1] == tensors[8][1] and torch.equal(samples[1][0], tensors[8][0])
    torch.testing.assert_close(collate(samples), default_collate(list(samples)), rtol=0, atol=0)
