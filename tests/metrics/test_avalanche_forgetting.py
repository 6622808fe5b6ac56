"""Avalanche's forgetting metrics and ours on an accuracy matrix worked by hand."""

import warnings
from types import SimpleNamespace

import pytest
import torch
from avalanche.benchmarks import benchmark_from_datasets, split_online_stream
from avalanche.benchmarks.utils import as_classification_dataset
from avalanche.evaluation.metrics.forgetting_bwt import ExperienceForgetting, StreamForgetting, forgetting_metrics
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import ViTNCM, online_stream
from avalanche_f2ocl.datasets.image_tensors import ImageTensors
from avalanche_f2ocl.metrics.accuracy_matrix import forgetting
from avalanche_f2ocl.metrics.avalanche_forgetting import OnlineExperienceForgetting, OnlineStreamForgetting

# In tenths. Group 1 rises from 8 to 9 before it falls to 5: the drop is 4, not 3.
T = [[8, 0, 0], [9, 7, 0], [5, 6, 9]]


@pytest.fixture(scope="module")
def benchmark():
    groups = [as_classification_dataset(ImageTensors(torch.zeros(10, 1), torch.arange(10))) for _ in T]
    return benchmark_from_datasets(train=groups, test=groups)


def play(metric, benchmark, online):
    """Drives a metric through a run whose accuracies are T."""
    strategy = SimpleNamespace(clock=SimpleNamespace(train_iterations=0), is_training=False, is_eval=True)
    for i, experience in enumerate(benchmark.train_stream):
        for trained in split_online_stream([experience], 5) if online else [experience]:
            strategy.experience = trained
            metric.before_training_exp(strategy)
        metric.before_eval(strategy)
        for j, evaluated in enumerate(benchmark.test_stream[: i + 1]):
            strategy.experience = evaluated
            metric.before_eval_exp(strategy)
            strategy.mb_y = torch.zeros(10, dtype=torch.int64)
            strategy.mb_output = torch.nn.functional.one_hot((torch.arange(10) >= T[i][j]).long(), 2).float()
            metric.after_eval_iteration(strategy)
            metric.after_eval_exp(strategy)
    return metric.result()


@pytest.mark.parametrize("online", [False, True], ids=["plain", "online"])
def test_ours_is_right_on_both(benchmark, online):
    assert play(OnlineExperienceForgetting(), benchmark, online) == pytest.approx({0: 0.4, 1: 0.1})
    assert play(OnlineStreamForgetting(), benchmark, online) == pytest.approx((0.4 + 0.1) / 2)
    assert play(OnlineStreamForgetting(), benchmark, online) == pytest.approx(forgetting(T) / 10)


def test_avalanches_takes_the_first_accuracy_and_goes_wrong_online(benchmark):
    assert play(ExperienceForgetting(), benchmark, online=False) == pytest.approx({0: 0.3, 1: 0.1})
    # Every mini-experience counts as its own id within its group, so the last one (id 1) passes for group 2.
    assert play(StreamForgetting(), benchmark, online=False) == pytest.approx(0.2)
    assert play(StreamForgetting(), benchmark, online=True) != pytest.approx(0.2)
    assert play(ExperienceForgetting(), benchmark, online=True) != pytest.approx({0: 0.4, 1: 0.1})


def test_a_warning_says_where_avalanches_own_are_wrong(vit, digits):
    for metrics, online, warned in (
        (forgetting_metrics(experience=True, stream=True), True, True),
        (forgetting_metrics(experience=True, stream=True), False, False),
        ([OnlineStreamForgetting()], True, False),
    ):
        strategy = ViTNCM(backbone=vit, evaluator=EvaluationPlugin(*metrics))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for experience in digits.train_stream[:2]:
                strategy.train(online_stream([experience], 10) if online else experience, eval_streams=[])
        messages = [str(w.message) for w in caught if "avalanche#1343" in str(w.message)]
        assert len(messages) == warned
        if warned:
            assert "ExperienceForgetting, StreamForgetting" in messages[0]
