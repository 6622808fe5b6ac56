import time
from functools import partial

import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.evaluation import PluginMetric
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import ViTNCM
from avalanche_f2ocl.baselines import ER
from avalanche_f2ocl.testing.running import small_vit, train_online
from benchmarks.runs.costs import Costs


@pytest.fixture
def clock(monkeypatch):
    """CPU time that passes only where a test lets it."""
    now = [0.0]
    monkeypatch.setattr(time, "process_time", lambda: now[0])
    return lambda seconds: now.__setitem__(0, now[0] + seconds)


class Taking(SupervisedPlugin, PluginMetric):
    """Lets time pass in callbacks; as a plugin or as a metric."""

    def __init__(self, clock, **seconds):
        super().__init__()
        for callback, value in seconds.items():
            setattr(self, callback, lambda *_, value=value, **__: clock(value))

    def result(self):
        return None

    def reset(self):
        pass


def test_the_methods_own_work_is_counted_and_metrics_are_not(clock, digits):
    plugin = Taking(clock, after_training_iteration=1.0, after_training=10.0, after_eval_forward=0.5)
    metric = Taking(clock, after_training_exp=100.0, after_eval_iteration=100.0)
    strategy = ViTNCM(
        backbone=small_vit(), plugins=[plugin], evaluator=EvaluationPlugin(metric), eval_mb_size=10, device="cpu"
    )
    costs = Costs(strategy)
    train_online(strategy, digits.train_stream[:2])  # 80 images in 8 mini-batches, two calls of train
    strategy.eval(digits.test_stream[:1])  # 20 images in 2 mini-batches
    figures = costs.figures()
    assert figures["train_seconds_per_1000"] == pytest.approx(1000 * (8 * 1.0 + 2 * 10.0) / 80)
    assert figures["test_seconds_per_1000"] == pytest.approx(1000 * 2 * 0.5 / 20)


def test_what_is_kept_beside_the_backbone(digits):
    sizes = {}
    for name, make in {"ncm": ViTNCM, "er": partial(ER, mem_size=30)}.items():
        strategy = make(backbone=small_vit(), evaluator=EvaluationPlugin(), device="cpu")
        costs = Costs(strategy)
        train_online(strategy, digits.train_stream[:1])
        strategy.eval(digits.test_stream[:1])
        sizes[name] = costs.figures()["kept_bytes"]
        assert sizes[name] < sum(t.nbytes for t in small_vit().state_dict().values())
    model = ViTNCM(backbone=small_vit(), evaluator=None).model
    model.learn(torch.zeros(2, 3, 32, 32), [0, 1])
    tables = [t for child in model.children() if child is not model.backbone for t in child.buffers()]
    assert sizes["ncm"] == pytest.approx(sum(t.nbytes for t in tables), abs=100)
    assert sizes["er"] > 30 * 8 * 8
