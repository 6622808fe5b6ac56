"""Strategies that keep samples are found to; that the others keep none is in test_strategies.py."""

import pytest
from avalanche.benchmarks import split_online_stream
from avalanche.training.plugins import EvaluationPlugin, ReplayPlugin

from avalanche_f2ocl import check_rehearsal_free, f2ocl_metrics, held_bytes
from tests.contracts.strategies import STRATEGIES
from tests.helpers import train_online


@pytest.fixture(params=STRATEGIES)
def name(request):
    return request.param


@pytest.fixture
def make(name, vit):
    return lambda **options: STRATEGIES[name](backbone=vit, evaluator=EvaluationPlugin(*f2ocl_metrics()), **options)


def test_er_is_found_to_keep_images(vit, digits):
    strategy = STRATEGIES["er"](backbone=vit, evaluator=None)
    train_online(strategy, digits.train_stream[:2])
    report = [check_rehearsal_free(strategy, experience.dataset) for experience in digits.train_stream[:2]]
    assert not any(part.passed for part in report)
    found = [finding for part in report for finding in part.findings]
    assert len({f.where for f in found}) == 30 and {f.what for f in found} == {"image"}
    assert all("._buffer[" in f.where for f in found), report[0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_replay_plugin_is_found(make, digits):
    strategy = make(plugins=[ReplayPlugin(mem_size=20)])
    train_online(strategy, digits.train_stream[:1])
    report = check_rehearsal_free(strategy, digits.train_stream[0].dataset)
    assert any("plugins[0].storage_policy" in finding.where for finding in report.findings)


def test_bytes_of_er_grow_until_its_memory_is_full(vit, digits):
    strategy = STRATEGIES["er"](backbone=vit, evaluator=None)
    sizes = []
    for part in split_online_stream(digits.train_stream[:1], 10, shuffle=False):
        strategy.train([part], eval_streams=[])
        sizes.append(held_bytes(strategy))
    one = 8 * 8 + 4  # an image, and its weight in the reservoir
    assert [size - sizes[0] for size in sizes] == [0, 10 * one, 20 * one, 20 * one]
