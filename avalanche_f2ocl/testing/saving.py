"""Checks that everything learned goes into a file and comes back."""

import os
import tempfile

import torch

from avalanche_f2ocl.models.model_file import read_model_file
from avalanche_f2ocl.strategies.run_file import learned
from avalanche_f2ocl.testing.running import Make, as_tensors, few_digits, train_online


def a_loaded_strategy_predicts_and_goes_on_as_the_saved_one(make: Make) -> None:
    """Both give the same, bit for bit."""
    digits = few_digits()
    strategy = train_online(make(), digits.train_stream[:2])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "learned.safetensors")
        strategy.save(path)
        other = type(strategy).load(path, backbone=strategy.model.backbone.weights, evaluator=None)
    images, _ = as_tensors(digits.test_stream[0])
    assert other.options == strategy.options
    assert torch.equal(other.model.class_ids, strategy.model.class_ids)
    assert torch.equal(other.model(images), strategy.model(images))
    for one in (strategy, other):
        train_online(one, digits.train_stream[2:3])
    expected, got = learned(strategy).tensors(), learned(other).tensors()
    assert expected.keys() == got.keys()
    for tensor in expected:
        assert torch.equal(expected[tensor], got[tensor]), tensor


def a_resumed_run_ends_as_one_that_never_stopped(make: Make) -> None:
    """Both give the same, bit for bit; the stream is gone through again from its beginning."""
    digits = few_digits()
    whole, first, again = make(), make(), make()
    train_online(whole, digits.train_stream[:3])
    train_online(first, digits.train_stream[:2])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.safetensors")
        first.save(path)
        assert again.resume(path)
    train_online(again, digits.train_stream[:3])
    expected, got = learned(whole).tensors(), learned(again).tensors()
    assert expected.keys() == got.keys()
    for tensor in expected:
        assert torch.equal(expected[tensor], got[tensor]), tensor


def nothing_of_the_backbone_and_no_image_is_in_the_file(make: Make) -> None:
    """So the file does not grow with the number of samples."""
    digits = few_digits()
    strategy, sizes = make(), []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "learned.safetensors")
        for _ in range(2):
            train_online(strategy, digits.train_stream[:2]).save(path)
            sizes.append(os.path.getsize(path))
        tensors, _ = read_model_file(path)
    assert abs(sizes[1] - sizes[0]) < 100
    assert not any(part in tensor for tensor in tensors for part in ("vit.", "blocks", "patch_embed"))


SAVING = (
    a_loaded_strategy_predicts_and_goes_on_as_the_saved_one,
    a_resumed_run_ends_as_one_that_never_stopped,
    nothing_of_the_backbone_and_no_image_is_in_the_file,
)
