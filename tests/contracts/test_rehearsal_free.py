"""Every strategy but the one that rehearses keeps no sample, and nothing that grows with their number."""

import pytest
from avalanche.training.plugins import EvaluationPlugin, ReplayPlugin
from torch.utils.data import ConcatDataset

from avalanche_f2ocl import check_rehearsal_free, f2ocl_metrics
from avalanche_f2ocl.rehearsal_check import held_bytes
from tests.contracts.strategies import STRATEGIES
from tests.helpers import train_online

FREE = [name for name in STRATEGIES if name != "er"]


@pytest.fixture(scope="module")
def samples(digits):
    return ConcatDataset([experience.dataset for experience in digits.train_stream[:2]])


def trained(name, vit, digits, **options):
    evaluator = EvaluationPlugin(*f2ocl_metrics())
    strategy = STRATEGIES[name](backbone=vit, evaluator=evaluator, **options)
    train_online(strategy, digits.train_stream[:2])
    strategy.eval(digits.test_stream[:2])
    return strategy


@pytest.mark.parametrize("name", FREE)
def test_no_sample_is_kept(name, vit, digits, samples):
    report = check_rehearsal_free(trained(name, vit, digits), samples)
    assert report.passed, str(report)


@pytest.mark.parametrize("name", FREE)
def test_nothing_grows_with_samples(name, vit, digits):
    strategy = trained(name, vit, digits)
    before = held_bytes(strategy)
    train_online(strategy, digits.train_stream[:2])
    assert held_bytes(strategy) == before > 0


@pytest.mark.parametrize("name", FREE)
def test_a_last_minibatch_of_one_image_leaves_no_gradient_behind(name, vit, digits, samples):
    strategy = trained(name, vit, digits)
    train_online(strategy, digits.train_stream[:1], batch_size=39)
    assert all(parameter.grad is None for parameter in strategy.model.parameters())
    report = check_rehearsal_free(strategy, samples)
    assert report.passed, str(report)


def test_er_is_found_out_and_the_place_named(vit, digits, samples):
    report = check_rehearsal_free(trained("er", vit, digits), samples)
    assert not report.passed
    assert any("buffer" in finding.where and finding.what == "image" for finding in report.findings)
    assert "holds the image of sample" in str(report)


@pytest.mark.parametrize("name", ["f2ocl", "vit-ncm"])
def test_a_replay_plugin_is_found_in_any_strategy(name, vit, digits, samples):
    assert not check_rehearsal_free(trained(name, vit, digits, plugins=[ReplayPlugin(mem_size=10)]), samples).passed
