"""What a user may expect of every strategy: the checks of ``avalanche_f2ocl.testing``."""

import pytest
import torch
from avalanche.evaluation.metrics import accuracy_metrics, loss_metrics
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import f2ocl_metrics
from avalanche_f2ocl.testing import EVERY_FAILURE, STRATEGY_CHECKS, on_small_vit
from tests.contracts.strategies import EXCEPTIONS, STRATEGIES
from tests.helpers import as_tensors, train_online

CHECKS = [check for check in STRATEGY_CHECKS if check not in EVERY_FAILURE]
"""Failing mini-batches have a file of their own, with many more of them."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", STRATEGIES)
def test_contract(name, check):
    if name.startswith(EXCEPTIONS.get(check.__name__, ())):
        pytest.skip("an exception, see strategies.py")
    check(on_small_vit(STRATEGIES[name]))


def test_exceptions_are_of_checks_and_strategies_there_are():
    assert EXCEPTIONS.keys() <= {check.__name__ for check in CHECKS}
    for names in EXCEPTIONS.values():
        assert all(any(name.startswith(start) for name in STRATEGIES) for start in names)


@pytest.fixture(params=STRATEGIES)
def name(request):
    return request.param


@pytest.fixture
def make(name, vit):
    return lambda **options: STRATEGIES[name](**{"backbone": vit, "evaluator": None, **options})


@pytest.mark.gpu
def test_on_cuda_with_avalanches_metrics(make, digits):
    evaluator = EvaluationPlugin(accuracy_metrics(stream=True), loss_metrics(stream=True), *f2ocl_metrics())
    strategy = make(device="cuda", evaluator=evaluator)
    train_online(strategy, digits.train_stream[:2])
    metrics = strategy.eval(digits.test_stream[:2])
    assert 0 < metrics["A_n/eval_phase/test_stream"] <= 1


@pytest.mark.gpu
def test_no_host_synchronisation_in_a_training_step(make, digits):
    strategy = make(device="cuda")
    train_online(strategy, digits.train_stream[:1])
    images, labels = as_tensors(digits.train_stream[0])
    strategy.model.train()
    strategy.is_training = True
    strategy.dataloader = [[images[:10].pin_memory(), labels[:10].pin_memory()]]
    torch.cuda.set_sync_debug_mode("error")
    try:
        strategy.training_epoch()
    finally:
        torch.cuda.set_sync_debug_mode("default")
