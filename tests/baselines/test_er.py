import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import class_incremental_stream, f2ocl_metrics
from avalanche_f2ocl.baselines import ER
from avalanche_f2ocl.baselines.linear import LinearStrategy
from avalanche_f2ocl.evaluation.by_groups import run_online
from tests.helpers import train_online


class Labels(SupervisedPlugin):
    def __init__(self):
        super().__init__()
        self.batches = []

    def before_training_iteration(self, strategy, **kwargs):
        self.batches.append(strategy.mb_y.tolist())


def test_ten_new_and_ten_old_images_from_a_reservoir(vit, digits):
    labels = Labels()
    strategy = ER(backbone=vit, mem_size=30, evaluator=None, plugins=[labels])
    train_online(strategy, digits.train_stream[:3])
    assert [len(batch) for batch in labels.batches] == [10] + [20] * 11
    buffer = next(p for p in strategy.plugins if hasattr(p, "storage_policy")).storage_policy.buffer
    assert len(buffer) == 30
    first = set(digits.train_stream[0].classes_in_this_experience)
    assert any(label in first for batch in labels.batches[-4:] for label in batch)


def test_replay_forgets_less(vit):
    digits = class_incremental_stream("digits", groups=5, train_per_class=80, test_per_class=10)

    def result(strategy_class, **options):
        evaluator = EvaluationPlugin(*f2ocl_metrics())
        return run_online(strategy_class(backbone=vit, evaluator=evaluator, **options), digits, progress=False)

    with_replay, without = result(ER, mem_size=300), result(LinearStrategy, lr=0.03)
    assert with_replay.A_n > without.A_n and with_replay.F_n < without.F_n - 0.05


def test_memory_size_out_of_range(vit):
    with pytest.raises(ValueError, match="mem_size=0"):
        ER(backbone=vit, mem_size=0, evaluator=None)


def test_draws_are_its_own(vit, digits):
    weights = []
    for seed in (0, 0, 1):
        strategy = ER(backbone=vit, mem_size=20, seed=seed, evaluator=None)
        train_online(strategy, digits.train_stream[:2])
        weights.append(strategy.model.head.used("weight").detach().clone())
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def test_draws_on_a_gpu_are_left_alone(vit, digits, monkeypatch):
    """What is not put back afterwards is not to be seeded."""
    seeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    train_online(ER(backbone=vit, mem_size=20, evaluator=None), digits.train_stream[:1])
    assert not seeded
