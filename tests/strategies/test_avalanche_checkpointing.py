"""Avalanche's own save_checkpoint, which pickles the whole strategy, works on ours where it works at all."""

import importlib

import pytest
import torch
from avalanche.checkpointing import maybe_load_checkpoint, save_checkpoint
from avalanche.training.plugins import EvaluationPlugin
from avalanche.training.supervised import Naive

from avalanche_f2ocl import f2ocl_metrics
from tests.contracts.strategies import STRATEGIES
from tests.helpers import assert_same_state, learned, train_online


@pytest.fixture
def bound(monkeypatch):
    """torch 2.13 and later hide the optimisers' modules, by whose names dill looks their classes up."""
    for name in ("adam", "sgd"):
        monkeypatch.setattr(torch.optim, name, importlib.import_module(f"torch.optim.{name}"), raising=False)


@pytest.mark.parametrize("name", STRATEGIES)
def test_saved_and_loaded_a_strategy_goes_on_as_if_nothing_had_been(name, small_vit, digits, tmp_path, bound):
    def make():
        return STRATEGIES[name](backbone=small_vit, evaluator=EvaluationPlugin(*f2ocl_metrics()))

    strategy = train_online(make(), digits.train_stream[:2])
    strategy.eval(digits.test_stream[:2])
    save_checkpoint(strategy, tmp_path / "strategy.pkl")
    loaded, done = maybe_load_checkpoint(make(), tmp_path / "strategy.pkl")
    assert done > 0 and type(loaded) is type(strategy) and loaded.options == strategy.options
    assert_same_state(learned(loaded.model), learned(strategy.model))
    results = []
    for one in (strategy, loaded):
        train_online(one, digits.train_stream[2:3])
        results.append(one.eval(digits.test_stream[:3]))
    if name != "er":  # its draws go on with torch's global generator, which the file does not hold
        assert_same_state(learned(loaded.model), learned(strategy.model))
        assert results[0] == results[1]


def test_avalanches_own_strategy_needs_the_same_help(digits, tmp_path, bound):
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    optimizer, criterion = torch.optim.Adam(model.parameters()), torch.nn.CrossEntropyLoss()
    naive = Naive(model=model, optimizer=optimizer, criterion=criterion, evaluator=None)
    save_checkpoint(naive, tmp_path / "naive.pkl")
    assert maybe_load_checkpoint(naive, tmp_path / "naive.pkl")[1] == 0
