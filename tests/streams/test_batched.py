"""A mini-batch fetched by one index is the one that is fetched image by image."""

from copy import deepcopy

import pytest
import torch
from avalanche.benchmarks.utils import DataAttribute, as_classification_dataset, as_taskaware_classification_dataset
from avalanche.training.plugins import EvaluationPlugin
from torch.utils.data import DataLoader, Subset, default_collate

from avalanche_f2ocl import ViTNCM, class_incremental_stream, f2ocl_metrics
from avalanche_f2ocl.datasets.image_tensors import ImageTensors, Samples, collate
from avalanche_f2ocl.datasets.loading import load
from avalanche_f2ocl.evaluation.by_groups import run_online
from avalanche_f2ocl.streams.batched import BatchedDataset
from tests.contracts.test_no_waiting import no_waiting


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


def test_images_on_a_device_are_fetched_without_waiting_for_it(tensors):
    data = BatchedDataset.of(tensors.to("meta")).subset([4, 2, 9])
    with no_waiting():
        fetched = data.__getitems__([0, 2])
    assert fetched.images.is_meta and fetched.images.shape == (2, 3, 4, 4) and fetched.labels.tolist() == [4, 2]


def test_what_is_on_a_device_is_not_pinned(tensors, small_vit):
    strategy = ViTNCM(backbone=small_vit, evaluator=None)
    strategy.device = torch.device("cuda")
    for images, pinned in ((tensors, True), (tensors.to("meta"), False)):
        data = BatchedDataset.of(images)
        for strategy.adapted_dataset in (data, data.subset([3, 1]), data.concat(data.subset([1, 2]))):
            for make in (strategy.make_train_dataloader, strategy.make_eval_dataloader):
                make()
                assert strategy.dataloader.pin_memory == pinned


@pytest.mark.gpu
def test_on_cuda_a_stream_of_images_there_is_learned_as_one_of_images_here(vit):
    data, accuracies = load("digits", train_per_class=5, test_per_class=5), []
    for where in (data, data.to("cuda")):
        evaluator = EvaluationPlugin(*f2ocl_metrics())
        strategy = ViTNCM(backbone=deepcopy(vit), evaluator=evaluator, device="cuda", precision="float32")
        accuracies.append(run_online(strategy, class_incremental_stream(where, groups=2), progress=False).A_n)
    assert accuracies[0] == accuracies[1] > 0.5
