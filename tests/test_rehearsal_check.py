from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torchvision.transforms.functional import to_pil_image

from avalanche_f2ocl import F2OCLStrategy, check_rehearsal_free
from avalanche_f2ocl.rehearsal_check import held_bytes
from tests.helpers import as_tensors, train_online


@pytest.fixture
def strategy(vit, digits):
    return train_online(F2OCLStrategy(backbone=vit, prompt_length=3, evaluator=None), digits.train_stream[:1])


@pytest.fixture
def samples(digits):
    return digits.train_stream[0].dataset


def prepared(strategy, images):
    return strategy.model.backbone.prepare(images)


def embedding(strategy, images):
    return strategy.model.backbone.encode(images)


class Slotted:
    __slots__ = ("inside",)


def slotted(thing):
    holder = Slotted()
    holder.inside = thing
    return holder


def closure(thing):
    return lambda: thing


LEAKS = {
    "an image": (lambda s, x: x[3].clone(), "image"),
    "a view of the stream's memory": (lambda s, x, own=None: None, "image"),
    "an image as float": (lambda s, x: x[3].float(), "image"),
    "an array of images": (lambda s, x: x.numpy().copy(), "image"),
    "images laid flat": (lambda s, x: x.flatten(1).clone(), "image"),
    "a picture": (lambda s, x: to_pil_image(x[3]), "image"),
    "as the backbone takes it": (lambda s, x: prepared(s, x)[3:5], "prepared image"),
    "tokens": (lambda s, x: s.model.backbone.tokens(x[3:4]), "tokens"),
    "an embedding": (lambda s, x: torch.cat([torch.randn(9, 128), embedding(s, x)[3:4]]), "embedding"),
    "an embedding at length one": (lambda s, x: F.normalize(embedding(s, x), dim=1), "embedding"),
}
HOLDERS = {
    "directly": lambda thing: thing,
    "in containers": lambda thing: {"a": [deque([(thing,)])]},
    "in an object": lambda thing: SimpleNamespace(own=thing),
    "in slots": slotted,
    "in a closure": closure,
    "in a set of objects": lambda thing: {closure(thing)},
}


@pytest.mark.parametrize("leak", LEAKS)
def test_leaks_are_found(leak, strategy, samples, digits):
    images, _ = as_tensors(digits.train_stream[0])
    make, what = LEAKS[leak]
    strategy.plugins[0].kept = samples[3][0] if leak.startswith("a view") else make(strategy, images)
    report = check_rehearsal_free(strategy, samples)
    assert what in {finding.what for finding in report.findings if finding.where == "strategy.plugins[0].kept"}


@pytest.mark.parametrize("holder", HOLDERS)
def test_leaks_are_found_wherever_they_hide(holder, strategy, samples, digits):
    images, _ = as_tensors(digits.train_stream[0])
    strategy.evaluator.kept = HOLDERS[holder](images[5].clone())
    report = check_rehearsal_free(strategy, samples)
    assert [(f.what, f.sample) for f in report.findings] == [("image", 5)]
    assert report.findings[0].where.startswith("strategy.evaluator.kept")


def test_cycles_end(strategy, samples):
    strategy.plugins[0].me = [strategy]
    assert check_rehearsal_free(strategy, samples).passed


def test_what_is_no_sample_is_not_reported(strategy, samples, digits):
    images, _ = as_tensors(digits.train_stream[0])
    strategy.plugins[0].kept = [
        torch.zeros_like(images[:2]), images.float().mean(0), torch.randn(40, 128), np.array(["text"]), images[0] + 1,
    ]  # fmt: skip
    report = check_rehearsal_free(strategy, samples)
    assert report.passed, str(report)


def test_black_pictures_are_not_taken_for_zeros(strategy):
    black = [(torch.zeros(1, 8, 8, dtype=torch.uint8), i % 2) for i in range(4)]
    strategy.plugins[0].kept = torch.zeros(64, 64)
    assert check_rehearsal_free(strategy, black).passed


def test_a_class_seen_once_has_that_sample_as_its_prototype(vit, digits):
    strategy = F2OCLStrategy(backbone=vit, prompt_length=3, evaluator=None)
    images, _ = as_tensors(digits.train_stream[0])
    strategy.model.learn(images[:2], [0, 1])
    once = [(images[i], i) for i in range(2)]
    assert check_rehearsal_free(strategy, once).passed
    twice = [*once, *once]
    found = check_rehearsal_free(strategy, twice).findings
    assert {(f.what, f.where) for f in found} == {("embedding", "strategy.model._modules['keys']._buffers['sums']")}


def test_bytes_count_what_is_held(strategy):
    before = held_bytes(strategy)
    strategy.plugins[0].kept = [torch.zeros(10), np.zeros(3)]
    assert held_bytes(strategy) == before + 40 + 24
