"""The parts of a step are its own time, and all of it."""

import time

import pytest
import torch
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import F2OCLStrategy
from benchmarks.speed.profile_step import Parts, profile


class Clock:
    """Goes on when it is told to, and takes the place of the real one."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def slow_down(self, owner, method, milliseconds, monkeypatch):
        original = getattr(owner, method)

        def slow(*args, **kwargs):
            self.now += milliseconds / 1000
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, method, slow)


def test_a_part_inside_another_counts_for_itself(monkeypatch):
    parts, clock = Parts(torch.device("cpu")), Clock(monkeypatch)
    with parts.part("outer"):
        clock.now += 0.02
        for _ in range(2):
            with parts.part("inner"):
                clock.now += 0.05
    assert parts.seconds == pytest.approx({"inner": 0.1, "outer": 0.02})


def test_every_part_has_the_time_that_it_took(vit, monkeypatch):
    strategy, clock = F2OCLStrategy(backbone=vit, evaluator=None, prompt_length=3), Clock(monkeypatch)
    model, backbone = strategy.model, strategy.model.backbone
    taken = {
        "tokens": (backbone, "tokens"), "q": (model, "_encode_unprompted"), "loss": (model, "loss"),
        "backward": (strategy, "backward"), "optimiser": (strategy, "optimizer_step"), "keys": (model, "update_keys"),
        "prototypes": (model, "update_prototypes"), "outputs": (model, "batch_logits"),
    }  # fmt: skip
    for milliseconds, place in enumerate(taken.values(), start=1):
        clock.slow_down(*place, milliseconds, monkeypatch)
    parts, alone = profile(strategy, batches=3)
    expected = {name: milliseconds for milliseconds, name in enumerate(taken, start=1)}
    assert {name: ms for name, ms in parts.items() if ms} == pytest.approx(expected)
    assert alone == pytest.approx(sum(expected.values()))


def test_all_parts_of_a_step_are_found(vit):
    evaluator = EvaluationPlugin(accuracy_metrics(minibatch=True))
    parts, alone = profile(F2OCLStrategy(backbone=vit, evaluator=evaluator, prompt_length=3), batches=3)
    assert set(parts) == {
        "data", "tokens", "q", "z", "loss", "backward", "optimiser", "keys", "prototypes", "outputs",
        "metrics", "rest",
    }  # fmt: skip
    assert all(taken > 0 for taken in parts.values()) and alone > 0
