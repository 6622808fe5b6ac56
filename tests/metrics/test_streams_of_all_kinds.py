"""Figures on streams whose test set is not in the training stream's groups, and of several evaluations."""

import math
import warnings

import numpy as np
import pytest
from avalanche.benchmarks import benchmark_from_datasets
from avalanche.benchmarks.utils.utils import concat_datasets
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import F2OCLStrategy, ViTNCM, class_incremental_stream, f2ocl_metrics, online_stream, run_online
from avalanche_f2ocl.metrics import forgetting
from tests.helpers import as_tensors, train_online


@pytest.fixture
def stream():
    return class_incremental_stream("digits", groups=3, train_per_class=6, test_per_class=5)


def joined(experiences):
    return concat_datasets([experience.dataset for experience in experiences])


def make_ncm(vit):
    return ViTNCM(backbone=vit, evaluator=EvaluationPlugin(*f2ocl_metrics()))


def accuracy(strategy, *experiences):
    """By hand, over all images of some experiences."""
    right = [strategy.model.predict(x) == y for x, y in map(as_tensors, experiences)]
    return float(np.concatenate(right).mean())


def with_joint_test_set(stream):
    return benchmark_from_datasets(train=[e.dataset for e in stream.train_stream], test=[joined(stream.test_stream)])


def domains(stream):
    """The same classes in each experience: parts of every class, as data- and domain-incremental streams have them."""
    parts = []
    for source in (stream.train_stream, stream.test_stream):
        data = joined(source)
        parts.append([data.subset(list(range(i, len(data), 3))) for i in range(3)])
    return benchmark_from_datasets(train=parts[0], test=parts[1])


def recurring(stream):
    """Experiences that come again, under ids of their own; one test experience for each distinct one."""
    train = [stream.train_stream[i].dataset for i in (0, 1, 0, 2, 1)]
    return benchmark_from_datasets(train=train, test=[experience.dataset for experience in stream.test_stream])


def test_a_joint_test_set_has_no_groups_but_an_accuracy(vit, stream):
    benchmark = with_joint_test_set(stream)
    strategy = make_ncm(vit)
    with pytest.warns(UserWarning, match="'test' has another number of experiences .* has 3: .* only A_n_samples"):
        result = run_online(strategy, benchmark, progress=False)
    assert result.A_n is None and result.F_n is None and np.isnan(result.T).all()
    assert result.A_n_samples == pytest.approx(accuracy(strategy, *benchmark.test_stream)) and result.A_n_samples > 0.2


def test_after_each_group_it_is_that_of_the_model_then_and_one_warning_is_enough(vit, stream):
    benchmark = with_joint_test_set(stream)
    strategy = make_ncm(vit)
    assert strategy.eval(benchmark.test_stream) == {}  # before training
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for experience in benchmark.train_stream:
            train_online(strategy, [experience])
            metrics = strategy.eval(benchmark.test_stream)
            assert set(metrics) == {"A_n_samples/eval_phase/test_stream"}
            assert metrics["A_n_samples/eval_phase/test_stream"] == pytest.approx(
                accuracy(strategy, *benchmark.test_stream)
            )
    assert len([w for w in caught if "only A_n_samples" in str(w.message)]) == 1


@pytest.mark.parametrize("make", [domains, recurring])
def test_streams_of_other_kinds(make, vit, stream):
    benchmark = make(stream)
    strategy, n = make_ncm(vit), len(benchmark.train_stream)
    T = np.full((n, n), np.nan)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*only A_n_samples")
        for i, experience in enumerate(benchmark.train_stream):
            train_online(strategy, [experience])
            metrics = strategy.eval(benchmark.test_stream)
            for j in range(i + 1 if make is domains else 0):
                T[i, j] = accuracy(strategy, benchmark.test_stream[j])
        result = run_online(make_ncm(vit), benchmark, progress=False)
    name = "/eval_phase/test_stream"
    np.testing.assert_allclose(strategy.evaluator.metrics[0].T, T)
    assert metrics["A_n_samples" + name] == pytest.approx(accuracy(strategy, *benchmark.test_stream))
    assert result.A_n_samples == pytest.approx(metrics["A_n_samples" + name])
    if make is domains:
        assert metrics["A_n" + name] == result.A_n == pytest.approx(T[-1].mean())
        assert metrics["F_n" + name] == result.F_n == pytest.approx(forgetting(T))
    else:
        assert "A_n" + name not in metrics and result.A_n is None


def test_streams_are_told_apart(vit, stream):
    alone, both = make_ncm(vit), make_ncm(vit)
    T = np.full((3, 3), np.nan)
    for i, experience in enumerate(stream.train_stream):
        for strategy in (alone, both):
            train_online(strategy, [experience])
            expected = strategy.eval(stream.test_stream)
        metrics = both.eval(stream.train_stream[: i + 1])
        for j in range(i + 1):
            T[i, j] = accuracy(both, stream.train_stream[j])
        expected = alone.eval(stream.test_stream)
        assert {name: value for name, value in metrics.items() if "test_stream" in name} == expected
    matrix = both.evaluator.metrics[0]
    np.testing.assert_allclose(matrix.T, alone.evaluator.metrics[0].T)
    np.testing.assert_allclose(matrix.matrix("train"), T)
    assert metrics["F_n/eval_phase/train_stream"] == pytest.approx(forgetting(T))
    assert metrics["A_n/eval_phase/train_stream"] != metrics["A_n/eval_phase/test_stream"]


def test_an_evaluation_in_parts_is_one_row_as_long_as_nothing_is_learned(vit, stream):
    strategy, name = make_ncm(vit), "A_n/eval_phase/test_stream"
    train_online(strategy, stream.train_stream[:2])
    assert name not in strategy.eval(stream.test_stream[:1])
    whole = strategy.eval(stream.test_stream[1:2])[name]
    assert whole == strategy.eval(stream.test_stream[:2])[name]
    part = online_stream([stream.train_stream[2]], 10)
    strategy.train(part, eval_streams=[])
    assert math.isnan(strategy.eval(stream.test_stream[2:])[name])  # the other groups' figures are of before


def test_no_figure_of_an_earlier_evaluation_stands_for_a_later_one(vit, stream):
    strategy, name = make_ncm(vit), "A_n/eval_phase/test_stream"
    train_online(strategy, stream.train_stream[:1])
    assert strategy.eval(stream.test_stream[:1])[name] > 0
    assert math.isnan(strategy.eval(stream.test_stream[1:])[name])  # of groups that were not trained on
    assert strategy.eval(stream.test_stream[:1])[name] > 0


@pytest.mark.parametrize("name", ["A_k", "UB", "random_key"])
def test_prompts_on_a_joint_test_set(name, vit, stream):
    """Over all samples, as with groups of one size."""
    joint = with_joint_test_set(stream)
    values = []
    for benchmark in (stream, joint):
        evaluator = EvaluationPlugin(*f2ocl_metrics())
        strategy = F2OCLStrategy(backbone=vit, prompt_length=2, evaluator=evaluator)
        train_online(strategy, benchmark.train_stream)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*only A_n_samples")
            strategy.eval(benchmark.test_stream)
        metric = next(m for m in evaluator.metrics if str(m) == name)
        counts = metric.evaluated["test"]
        values.append((sum(int(r) for r in counts.right.values()), sum(counts.samples.values())))
    assert values[0][1] == values[1][1] == 50
    if name != "random_key":  # its draws go over mini-batches, which are cut otherwise
        assert values[0] == values[1]


@pytest.mark.parametrize("order", [("train", "test"), ("test", "train"), ("train",)])
def test_t_is_of_the_test_stream_or_else_of_the_first(vit, stream, order):
    strategy = make_ncm(vit)
    train_online(strategy, stream.train_stream)
    for name in order:
        strategy.eval(getattr(stream, f"{name}_stream"))
    matrix = strategy.evaluator.metrics[0]
    name = "test" if "test" in order else order[0]
    expected = [accuracy(strategy, experience) for experience in getattr(stream, f"{name}_stream")]
    np.testing.assert_allclose(matrix.T[-1], expected)
