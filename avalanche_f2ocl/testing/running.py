"""Common parts of the checks of strategies: a small backbone, a small stream, and training on it."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any
from unittest import TestCase

import torch
from avalanche.benchmarks import CLScenario, split_online_stream
from avalanche.core import SupervisedPlugin
from timm.models import VisionTransformer
from torch import Tensor, nn

from avalanche_f2ocl.streams.class_incremental import class_incremental_stream

Make = Callable[..., Any]
"""Makes a new, untrained strategy from ``backbone``, ``evaluator``, ``plugins`` and other options of the loop."""

raises = TestCase().assertRaisesRegex


@lru_cache
def small_vit() -> VisionTransformer:
    """A ViT with random weights, the smallest that every strategy takes."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return VisionTransformer(img_size=32, patch_size=8, embed_dim=32, depth=5, num_heads=2, num_classes=0)


@lru_cache
def few_digits() -> CLScenario:
    """Handwritten digits: five groups of two classes, 20 training and 10 test images a class."""
    return class_incremental_stream("digits", groups=5, train_per_class=20, test_per_class=10)


def train_online(strategy: Any, stream: Iterable[Any], batch_size: int = 10) -> Any:
    """Trains on experiences, one after the other, in mini-batches; returns the strategy."""
    for experience in stream:
        strategy.train(split_online_stream([experience], batch_size, shuffle=False), eval_streams=[])
    return strategy


def as_tensors(experience: Any) -> tuple[Tensor, Tensor]:
    """An experience's images and labels, ``(N, C, H, W)`` and ``(N,)``."""
    items = [experience.dataset[i] for i in range(len(experience.dataset))]
    return torch.stack([item[0] for item in items]), torch.tensor([item[1] for item in items])


def learned(model: nn.Module) -> dict[str, Tensor]:
    """A copy of everything that a model has learned, without the frozen backbone."""
    return {name: t.clone() for name, t in model.state_dict().items() if not name.startswith("backbone.")}


def assert_same_state(one: dict[str, Tensor], other: dict[str, Tensor], exactly: bool = True) -> None:
    """Raises ``AssertionError`` with the name of a tensor that differs, by more than 1e-4 if not ``exactly``."""
    assert one.keys() == other.keys()
    for name in one:
        if exactly:
            assert torch.equal(one[name], other[name]), name
        else:
            torch.testing.assert_close(one[name], other[name], rtol=1e-4, atol=1e-4, msg=f"{name} differs")


class Note(SupervisedPlugin):
    """Calls ``note(strategy)`` in one of Avalanche's callbacks."""

    def __init__(self, callback: str, note: Callable[[Any], Any]) -> None:
        super().__init__()
        setattr(self, callback, lambda strategy, **_: note(strategy))


class Recorder(SupervisedPlugin):
    """Notes every callback, and the training-time outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.outputs: list[Tensor] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith(("before_", "after_")):
            calls = super().__getattribute__("calls")
            outputs = super().__getattribute__("outputs")

            def note(strategy, **kwargs):
                calls.append(name)
                if name == "after_forward":
                    outputs.append(strategy.mb_output.detach().clone())

            return note
        return super().__getattribute__(name)
