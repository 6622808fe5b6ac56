import pytest
import torch

from avalanche_f2ocl import datasets
from benchmarks.runs import runner, streams
from tests.benchmarks.runs.test_runner import arguments


def images(experiences):
    return [bytes(image.numpy().tobytes()) for experience in experiences for image, *_ in experience.dataset]


def test_held_out_images_are_training_images_that_are_not_trained_on(tmp_path):
    args = runner.parse_args([*arguments("vit-ncm", tmp_path), "--held-out", "4"])
    benchmark = streams.make_stream(args)
    train, test = images(benchmark.train_stream), images(benchmark.test_stream)
    assert len(train) == 60 and len(test) == 40 and not set(train) & set(test)
    all_training = {bytes(image.numpy().tobytes()) for image, _ in datasets.load("digits").train}
    assert set(train) | set(test) <= all_training
    for group, part in zip(benchmark.train_stream, benchmark.test_stream, strict=True):
        assert group.classes_in_this_experience == part.classes_in_this_experience
        assert torch.bincount(torch.tensor(list(part.dataset.targets))).max() == 4


@pytest.mark.parametrize("name", streams.BOUNDARY_FREE)
def test_streams_without_boundaries_have_one_experience(name, tmp_path):
    args = runner.parse_args([*arguments("vit-ncm", tmp_path), "--stream", name])
    benchmark = streams.make_stream(args)
    assert len(benchmark.train_stream) == len(benchmark.test_stream) == 1
    assert len(benchmark.test_stream[0].dataset) == 50
