"""The plugin metrics against predictions made by hand after each group."""

import numpy as np
import pytest
import torch
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import F2OCLStrategy, ViTNCM, f2ocl_metrics
from avalanche_f2ocl.metrics import average_accuracy, forgetting
from avalanche_f2ocl.rng import generator
from tests.helpers import as_tensors, train_online

PREFIX = "/eval_phase/test_stream"


def run(strategy, stream, online=True, groups=None):
    """Trains and evaluates group by group; returns the last metrics and T predicted by hand."""
    n = groups or len(stream.train_stream)
    T = np.full((n, n), np.nan)
    for i, experience in enumerate(stream.train_stream[:n]):
        if online:
            train_online(strategy, [experience])
        else:
            strategy.train(experience, shuffle=False, eval_streams=[])
        metrics = strategy.eval(stream.test_stream[: i + 1])
        for j in range(i + 1):
            images, labels = as_tensors(stream.test_stream[j])
            T[i, j] = (strategy.model.predict(images) == labels).double().mean()
    return metrics, T


@pytest.mark.parametrize("online", [True, False], ids=["online", "plain"])
def test_accuracy_matrix(vit, digits, evaluator, online):
    strategy = ViTNCM(backbone=vit, evaluator=evaluator)
    metrics, T = run(strategy, digits, online)
    np.testing.assert_allclose(evaluator.metrics[0].T, T)
    assert metrics["A_n" + PREFIX] == pytest.approx(average_accuracy(T))
    assert metrics["F_n" + PREFIX] == pytest.approx(forgetting(T))
    assert set(metrics) == {name + PREFIX for name in ("A_n", "A_n_samples", "F_n")}


def test_key_metrics(vit, digits, evaluator):
    strategy = F2OCLStrategy(backbone=vit, prompt_length=3, head_features="z", evaluator=evaluator)
    metrics, T = run(strategy, digits)
    model = strategy.model
    np.testing.assert_allclose(evaluator.metrics[0].T, T)
    key_accuracy, oracle = [], []
    for experience in digits.test_stream:
        images, labels = as_tensors(experience)
        q = model.backbone.encode(images)
        nearest = torch.cosine_similarity(q.unsqueeze(1), model.keys.vectors(), dim=2).argmax(1)
        key_accuracy.append((model.class_ids[nearest] == labels).double().mean())
        prompts = model.pool.prompts[model.classes.rows(labels)].detach()
        scores = model.head.logits(model.backbone.encode(images, prompts))
        oracle.append((model.class_ids[scores.argmax(1)] == labels).double().mean())
    assert metrics["A_k" + PREFIX] == pytest.approx(np.mean(key_accuracy))
    assert metrics["UB" + PREFIX] == pytest.approx(np.mean(oracle))
    assert 0 <= metrics["random_key" + PREFIX] <= 1


def test_key_accuracy_is_that_of_vit_ncm_with_mean_keys(vit, digits, evaluator):
    ncm = ViTNCM(backbone=vit, evaluator=evaluator)
    f2ocl = F2OCLStrategy(backbone=vit, prompt_length=3, evaluator=EvaluationPlugin(*f2ocl_metrics()))
    assert run(f2ocl, digits)[0]["A_k" + PREFIX] == run(ncm, digits)[0]["A_n" + PREFIX]


def test_upper_bound_and_random_key_come_at_the_end_only(vit, digits, evaluator):
    strategy = F2OCLStrategy(backbone=vit, prompt_length=3, evaluator=evaluator)
    metrics, _ = run(strategy, digits, groups=4)
    assert "A_k" + PREFIX in metrics and "UB" + PREFIX not in metrics and "random_key" + PREFIX not in metrics


def test_random_key_is_reproducible_and_not_the_oracle(vit, digits):
    values = []
    for seed in (0, 0):
        evaluator = EvaluationPlugin(*f2ocl_metrics())
        strategy = F2OCLStrategy.paper(backbone=vit, prompt_length=3, seed=seed, evaluator=evaluator)
        train_online(strategy, digits.train_stream)
        values.append(strategy.eval(digits.test_stream))
    assert values[0]["random_key" + PREFIX] == values[1]["random_key" + PREFIX] < values[0]["UB" + PREFIX]


@pytest.mark.parametrize("seed", [0, 3])
def test_random_key_by_hand(seed, vit, digits, evaluator):
    """Each image under the prompt of a class drawn by the seed, whatever its label is."""
    strategy = F2OCLStrategy(backbone=vit, prompt_length=3, head_features="z", seed=seed, evaluator=evaluator)
    train_online(strategy, digits.train_stream)
    metrics, model, shares = strategy.eval(digits.test_stream), strategy.model, []
    draw = generator(seed, "random-key")
    for experience in digits.test_stream:  # one mini-batch each
        images, labels = as_tensors(experience)
        rows = torch.randint(10, (len(labels),), generator=draw)
        scores = model.head.logits(model.backbone.encode(images, model.pool.prompts[rows].detach()))
        shares.append((model.class_ids[scores.argmax(1)] == labels).double().mean().item())
        assert not torch.equal(rows, model.classes.rows(labels))
    assert metrics["random_key" + PREFIX] == pytest.approx(np.mean(shares))


def test_groups_not_trained_on_do_not_count(vit, digits, evaluator):
    strategy = ViTNCM(backbone=vit, evaluator=evaluator)
    assert strategy.eval(digits.test_stream) == {}
    train_online(strategy, digits.train_stream[:2])
    some = strategy.eval(digits.test_stream)["A_n" + PREFIX]
    assert evaluator.metrics[0].T.shape == (2, 2)
    assert some == strategy.eval(digits.test_stream[:2])["A_n" + PREFIX]


def test_an_evaluation_of_some_groups_gives_no_average(vit, digits, evaluator):
    strategy = ViTNCM(backbone=vit, evaluator=evaluator)
    train_online(strategy, digits.train_stream[:2])
    assert strategy.eval(digits.test_stream[1:2]) == {}
    assert np.isnan(evaluator.metrics[0].T[1, 0]) and not np.isnan(evaluator.metrics[0].T[1, 1])


def test_no_forgetting_where_earlier_groups_were_not_evaluated(vit, digits, evaluator):
    strategy = ViTNCM(backbone=vit, evaluator=evaluator)
    train_online(strategy, digits.train_stream[:3])
    metrics = strategy.eval(digits.test_stream[:3])
    assert "A_n" + PREFIX in metrics and "F_n" + PREFIX not in metrics


def test_unequal_groups_weigh_equally_in_A_n_and_by_samples_in_A_n_samples(vit, evaluator):
    from avalanche_f2ocl import class_incremental_stream

    stream = class_incremental_stream("digits", groups=3, train_per_class=10)
    strategy = ViTNCM(backbone=vit, evaluator=evaluator)
    metrics, T = run(strategy, stream)
    sizes = [len(e.dataset) for e in stream.test_stream]
    assert metrics["A_n" + PREFIX] == pytest.approx(T[-1].mean())
    assert metrics["A_n_samples" + PREFIX] == pytest.approx(np.dot(T[-1], sizes) / sum(sizes))
    assert len(set(sizes)) > 1
