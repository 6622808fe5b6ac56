import math

import pytest
import torch

from avalanche_f2ocl import F2OCLStrategy, ViTNCM, shuffled_stream
from avalanche_f2ocl.metrics.prequential import PrequentialAccuracy
from tests.contracts.strategies import STRATEGIES
from tests.helpers import as_tensors, assert_same_state, learned, train_online


@pytest.fixture(scope="module")
def stream():
    return shuffled_stream("digits", train_per_class=8, test_per_class=2)


def by_hand(model, images, labels, batch_size=10):
    """Predicts each mini-batch, then learns it; a class not yet seen cannot be predicted."""
    right = 0
    for x, y in zip(images.split(batch_size), labels.split(batch_size), strict=True):
        if model.batches:
            right += sum(int(a == b) for a, b in zip(model.predict(x), y, strict=True))
        model.learn(x, y)
    return right / len(labels)


@pytest.mark.parametrize("make", [ViTNCM, lambda **o: F2OCLStrategy(prompt_length=3, **o)], ids=["vit-ncm", "f2ocl"])
def test_equals_the_loop_written_out(make, trained_vit, stream):
    prequential = PrequentialAccuracy()
    strategy = make(backbone=trained_vit, plugins=[prequential], evaluator=None)
    train_online(strategy, stream.train_stream)
    expected = by_hand(make(backbone=trained_vit, evaluator=None).model, *as_tensors(stream.train_stream[0]))
    assert 0.2 < expected < 0.9 and prequential.samples == 80
    assert prequential.result() == pytest.approx(expected)


@pytest.mark.parametrize("name", ["f2ocl-paper", "er", "lwf", "l2p-ncm"])
def test_strategies_learn_as_without_it(name, vit, stream):
    prequential = PrequentialAccuracy()
    one = STRATEGIES[name](backbone=vit, evaluator=None, plugins=[prequential])
    other = STRATEGIES[name](backbone=vit, evaluator=None)
    for strategy in (one, other):
        train_online(strategy, stream.train_stream)
    assert_same_state(learned(one.model), learned(other.model))
    assert prequential.samples == 80 and 0 < prequential.result() < 1


def test_of_a_replayed_mini_batch_only_what_is_new_is_predicted(vit, stream):
    asked = []

    class Recorded(PrequentialAccuracy):
        def before_training_iteration(self, strategy, **kwargs):
            super().before_training_iteration(strategy, **kwargs)
            asked.append((len(strategy.mb_y), strategy.mb_y[:10].tolist()))

    train_online(STRATEGIES["er"](backbone=vit, evaluator=None, plugins=[Recorded()]), stream.train_stream)
    assert [n for n, _ in asked] == [10] + [20] * 7
    labels = as_tensors(stream.train_stream[0])[1].split(10)
    assert [sorted(y) for _, y in asked] == [sorted(y.tolist()) for y in labels]


def test_only_the_first_epoch_counts(vit, stream):
    prequential = PrequentialAccuracy()
    strategy = ViTNCM(backbone=vit, plugins=[prequential], train_epochs=3, evaluator=None)
    train_online(strategy, stream.train_stream)
    assert prequential.samples == 80


def test_nothing_predicted_yet():
    assert math.isnan(PrequentialAccuracy().result())


def test_before_anything_is_learned_every_sample_is_wrong(vit, stream):
    prequential = PrequentialAccuracy()
    strategy = ViTNCM(backbone=vit, plugins=[prequential], train_mb_size=80, evaluator=None)
    train_online(strategy, stream.train_stream, batch_size=80)
    assert (prequential.result(), prequential.samples) == (0, 80)
    assert torch.equal(strategy.model.class_ids.sort().values, torch.arange(10))
