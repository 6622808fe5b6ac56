"""The parts of a step are its own time, and all of it."""

import time

import pytest
import torch
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import F2OCLStrategy
from benchmarks.speed.profile_step import Parts, profile


def test_a_part_inside_another_counts_for_itself():
    parts = Parts(torch.device("cpu"))
    with parts.part("outer"):
        time.sleep(0.02)
        for _ in range(2):
            with parts.part("inner"):
                time.sleep(0.05)
    assert parts.seconds["inner"] == pytest.approx(0.1, rel=0.5)
    assert parts.seconds["outer"] < parts.seconds["inner"]


def test_all_parts_of_a_step_are_found(vit):
    evaluator = EvaluationPlugin(accuracy_metrics(minibatch=True))
    parts, alone = profile(F2OCLStrategy(backbone=vit, evaluator=evaluator, prompt_length=3), batches=3)
    assert set(parts) == {
        "data", "tokens", "q", "z", "loss", "backward", "optimiser", "keys", "prototypes", "outputs",
        "metrics", "rest",
    }  # fmt: skip
    assert all(taken > 0 for taken in parts.values()) and alone > 0
