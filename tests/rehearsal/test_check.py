from array import array
from collections import deque

import numpy as np
import pytest
import torch
from avalanche.core import SupervisedPlugin
from PIL import Image
from torch import nn
from torch.nn import functional as F

from avalanche_f2ocl import F2OCLModel, ViTNCM, check_rehearsal_free
from avalanche_f2ocl.baselines import LinearStrategy
from tests.helpers import train_online


@pytest.fixture
def samples(images, labels):
    return list(zip(images, labels.tolist(), strict=True))


@pytest.fixture
def taught(model, images, labels):
    for part in torch.arange(len(labels)).split(4):
        model.learn(images[part], labels[part])
    return model


class Slotted:
    __slots__ = ("kept",)

    def __init__(self, kept):
        self.kept = kept


def hook_over(kept):
    return lambda module, args: kept and None


def class_over(kept):
    class Keeper:
        def show(self):
            return kept

        @staticmethod
        def size():
            return len(kept)

    return Keeper


def captured(tokens):
    """As torch.cuda.make_graphed_callables keeps it: static methods of a local class close over the input."""

    class Graphed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            tokens.copy_(inputs[0])
            return tokens.clone()

    return lambda *inputs: Graphed.apply(*inputs)


LEAKS = {
    "image": lambda m, x: x[5].clone(),
    "view of the batch": lambda m, x: x[4:7],
    "row of a buffer": lambda m, x: torch.cat([torch.zeros_like(x[:3]), x[5:6]]),
    "flat row of a buffer": lambda m, x: torch.cat([torch.zeros(3, 3072), x[5:6].flatten(1).float()]),
    "float": lambda m, x: x[5].float() / 255,
    "normalised": lambda m, x: m.backbone.prepare(x[5:6]),
    "half": lambda m, x: m.backbone.prepare(x[5:6]).half(),
    "numpy, channels last": lambda m, x: x[5].permute(1, 2, 0).numpy().copy(),
    "numpy, read backwards": lambda m, x: x.numpy()[::-1],
    "PIL": lambda m, x: Image.fromarray(x[5].permute(1, 2, 0).numpy()),
    "bytes": lambda m, x: x[5].numpy().tobytes(),
    "lists": lambda m, x: x[5].tolist(),
    "deque in a dict in an object": lambda m, x: Slotted({"last": deque([None, x[5].clone()])}),
    "array of objects": lambda m, x: np.array([None, Slotted(x[5].clone())], dtype=object),
    "data set": lambda m, x: torch.utils.data.Subset(torch.utils.data.TensorDataset(x, x), [5]),
    "closure": lambda m, x: hook_over(x[5].clone()),
    "default": lambda m, x: lambda image=x[5].clone(): image,  # noqa: B008
    "bound method": lambda m, x: Slotted(x[5].clone()).__repr__,
    "iterator": lambda m, x: iter([x[5].clone()]),
    "generator": lambda m, x: (image for image in [x[5].clone()]),
    "class attribute": lambda m, x: type("Keeper", (), {"kept": [x[5].clone()]})(),
    "negative": lambda m, x: 255 - x[5],
    "negative of q": lambda m, x: -m.backbone.encode(x[5:6]),
    "array of Python's": lambda m, x: array("f", x[5].flatten().tolist()),
    "array of Python's, integers": lambda m, x: array("H", x[5].flatten().tolist()),
    "view of a buffer": lambda m, x: memoryview(bytearray(x[5].numpy().tobytes())),
    "closure of a method": lambda m, x: class_over(x[5].clone())(),
    "closure of a class's static method": lambda m, x: class_over(x[5].clone()),
    "default of a method": lambda m, x: type("Keeper", (), {"kept": lambda self, image=x[5].clone(): image})(),  # noqa: B008
    "static input of a captured pass": lambda m, x: captured(m.backbone.tokens(x[5:6])),
    "gradient": lambda m, x: with_gradient(nn.Parameter(torch.zeros(3, 32, 32)), x[5].float()),
    "graph": lambda m, x: (nn.Parameter(torch.ones(3, 32, 32)) * x[5].float()).sum(),
    "tokens": lambda m, x: m.backbone.tokens(x[5:6])[0],
    "q in a big matrix": lambda m, x: torch.cat([torch.randn(500, 32), m.backbone.encode(x[5:6])]),
    "q in a column": lambda m, x: torch.cat([torch.randn(500, 32), m.backbone.encode(x[5:6])]).T.contiguous(),
    "unit q, in 16 bits": lambda m, x: F.normalize(m.backbone.encode(x[5:6])).bfloat16(),
    "z": lambda m, x: m.backbone.encode(x[5:6], m.pool.prompts[m.predict_batch(x[5:6]).key_rows].flatten(1, 2)),
}


def with_gradient(parameter, gradient):
    parameter.grad = gradient
    return parameter


@pytest.mark.parametrize("leak", LEAKS)
def test_what_is_kept_is_found(taught, samples, images, leak):
    assert check_rehearsal_free(taught, samples).passed
    taught.kept = LEAKS[leak](taught, images)
    report = check_rehearsal_free(taught, samples)
    assert 5 in {finding.sample for finding in report.findings}
    if leak not in ("view of the batch", "numpy, read backwards"):
        assert {finding.sample for finding in report.findings} == {5}
    assert all("kept" in finding.where for finding in report.findings)
    assert "sample 5: " in str(report) and "of 12 samples are kept" in str(report)


def test_a_resized_image_is_found(taught, draw):
    images = torch.randint(0, 256, (6, 3, 40, 40), dtype=torch.uint8, generator=draw)
    samples = [(image, 4) for image in images]
    resized = taught.backbone.prepare(images[2:3])
    in_8_bits = ((resized - resized.min()) / (resized.max() - resized.min()) * 255).round().byte()
    for kept in (images[2], resized, in_8_bits):
        taught.kept = kept.clone()
        assert {f.sample for f in check_rehearsal_free(taught, samples).findings} == {2}


def test_memory_shared_with_a_sample_is_found(taught, samples, images):
    taught.kept = images[5, :, 3:7]
    (finding,) = check_rehearsal_free(taught, samples).findings
    assert (finding.what, finding.sample, finding.where) == ("memory of the image", 5, "strategy.kept")


def test_hooks_of_the_backbone_and_plugins(vit, digits):
    strategy = train_online(ViTNCM(backbone=vit, evaluator=None), digits.train_stream[:1])
    data = digits.train_stream[0].dataset
    handle = strategy.model.backbone.register_forward_pre_hook(hook_over(data[5][0].clone()))
    (finding,) = check_rehearsal_free(strategy, data).findings
    assert finding.sample == 5 and finding.where.startswith("strategy.model.backbone._forward_pre_hooks[")
    handle.remove()

    class Diary(SupervisedPlugin):
        def after_training_iteration(self, strategy, **kwargs):
            self.last = strategy.mb_x

    strategy.plugins.insert(0, Diary())
    train_online(strategy, digits.train_stream[:1])
    report = check_rehearsal_free(strategy, data)
    assert {f.sample for f in report.findings} == set(range(30, 40))
    assert {f.where for f in report.findings} == {"strategy.plugins[0].last"}


def test_the_gradient_of_the_last_image_is_not_kept(vit, digits):
    strategy = train_online(LinearStrategy(backbone=vit, evaluator=None), digits.train_stream[:2], batch_size=1)
    assert check_rehearsal_free(strategy, digits.train_stream[1].dataset).passed


def test_outputs_and_statistics_are_no_samples(taught, samples, images):
    taught.outputs = [taught(images), taught.class_ids, taught.backbone.encode(images).mean(0)]
    assert check_rehearsal_free(taught, samples).passed


def test_prototypes_of_classes_with_one_sample_are_no_finding(vit, images):
    model = F2OCLModel(vit)
    model.learn(images[:1], [3])
    assert check_rehearsal_free(model, [(image, 3) for image in images]).passed
    model.learn(images[1:2], [3])
    assert check_rehearsal_free(model, [(image, 3) for image in images]).passed


@pytest.mark.parametrize("value", [0, 255])
def test_images_of_one_colour_are_not_mistaken_for_zeros_or_ones(vit, images, value):
    """Nor is the mean of a class whose images are all the same taken for one of them."""
    model = F2OCLModel(vit)
    plain = torch.full_like(images[:6], value)
    model.learn(plain, [0] * 6)
    model.zeros, model.ones = torch.zeros(4, 3, 32, 32), torch.ones(4, 3, 32, 32)
    assert check_rehearsal_free(model, [(image, 0) for image in plain]).passed


def test_the_walk_ends_on_cycles_and_changes_nothing(taught, samples):
    taught.kept = [taught]
    taught.kept.append(taught.kept)
    before = {name: value.clone() for name, value in taught.state_dict().items()}
    assert check_rehearsal_free(taught, samples).passed
    assert all(torch.equal(value, before[name]) for name, value in taught.state_dict().items())
    assert not taught.backbone.vit.fc_norm._forward_hooks


def test_before_anything_is_learned_and_wrong_arguments(model, samples):
    assert check_rehearsal_free(model, samples).passed
    with pytest.raises(ValueError, match="samples are empty"):
        check_rehearsal_free(model, [])
    with pytest.raises(TypeError, match="BaseModel"):
        check_rehearsal_free(nn.Linear(2, 2), samples)
