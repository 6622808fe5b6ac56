"""Evaluations of an interrupted run come back by when and of what they were, or are refused."""

import copy
import math
import warnings

import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.evaluation.metrics import confusion_matrix_metrics
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import (
    CheckpointPlugin,
    F2OCLStrategy,
    ViTNCM,
    class_incremental_stream,
    f2ocl_metrics,
    online_stream,
)
from avalanche_f2ocl.strategies.known_evaluations import Evaluation, KnownEvaluations
from tests.helpers import assert_same_state, learned


class Interrupt(Exception):
    pass


class Stop(SupervisedPlugin):
    """Ends the run before a mini-batch."""

    def __init__(self, batch):
        super().__init__()
        self.batch = batch

    def before_training_iteration(self, strategy, **kwargs):
        if strategy.clock.train_iterations == self.batch:
            raise Interrupt


@pytest.fixture
def stream():
    return class_incremental_stream("digits", groups=3, train_per_class=8, test_per_class=3)


def make(vit, *plugins, metrics=f2ocl_metrics, kind=ViTNCM, **options):
    return kind(backbone=vit, plugins=list(plugins), evaluator=EvaluationPlugin(*metrics()), **options)


def run(strategy, stream, periodic=False):
    """Trains and evaluates; what each evaluation returned. With ``periodic`` Avalanche also evaluates in training."""
    returned = []
    for i, experience in enumerate(stream.train_stream):
        if periodic:
            strategy.train(experience, eval_streams=[stream.test_stream])
        else:
            strategy.train(online_stream([experience], 10), eval_streams=[])
        returned.append(strategy.eval(stream.test_stream[: i + 1]))
    return returned


def same(one, other):
    """Whether evaluations are the same, NaN being like NaN."""
    return str(one) == str(other)


PERIODIC = [
    dict(eval_every=1, peval_mode="iteration"),
    dict(eval_every=2, peval_mode="iteration"),
    dict(eval_every=1, peval_mode="epoch"),
    dict(eval_every=0, peval_mode="experience"),
]


@pytest.mark.parametrize("options", PERIODIC, ids=str)
@pytest.mark.parametrize("stop", [1, 4, 5])
def test_a_run_with_periodic_evaluations_goes_on(options, stop, small_vit, stream, tmp_path):
    whole = make(small_vit, **options)
    expected = run(whole, stream, periodic=True)
    path = tmp_path / "run.safetensors"
    with pytest.raises(Interrupt):
        run(make(small_vit, CheckpointPlugin(path, every_batches=1), Stop(stop), **options), stream, periodic=True)
    resumed = make(small_vit, **options)
    assert resumed.resume(path)
    assert same(run(resumed, stream, periodic=True), expected) and not resumed.catching_up
    assert_same_state(learned(resumed.model), learned(whole.model))
    assert same([e.as_values() for e in resumed.evaluations], [e.as_values() for e in whole.evaluations])
    assert str(resumed.evaluator.metrics[0].T) == str(whole.evaluator.metrics[0].T)


def test_a_resumed_run_is_resumed_again(small_vit, stream, tmp_path):
    path, options = tmp_path / "run.safetensors", dict(kind=F2OCLStrategy, prompt_length=2)
    whole = make(small_vit, **options)
    expected = run(whole, stream)
    for stop in (2, 4, 7):
        strategy = make(small_vit, CheckpointPlugin(path, every_batches=1), Stop(stop), **options)
        assert strategy.resume(path, missing_ok=True) == (stop > 2)
        with pytest.raises(Interrupt):
            run(strategy, stream)
        assert strategy.clock.train_iterations == stop
    resumed = make(small_vit, **options)
    assert resumed.resume(path) and resumed.catching_up_batches == 7
    assert same(run(resumed, stream), expected)
    assert_same_state(learned(resumed.model), learned(whole.model))
    assert same([e.as_values() for e in resumed.evaluations], [e.as_values() for e in whole.evaluations])
    assert resumed.clock.train_iterations == whole.clock.train_iterations


@pytest.mark.parametrize("options", [dict(eval_every=2), dict(peval_mode="iteration")], ids=str)
def test_other_times_of_evaluation_are_refused_before_anything_changes(options, small_vit, stream, tmp_path):
    path = tmp_path / "run.safetensors"
    strategy = make(small_vit)
    run(strategy, stream)
    strategy.save(path)
    other = make(small_vit, **options)
    before = copy.deepcopy(learned(other.model))
    with pytest.raises(ValueError, match=f"{next(iter(options))}=.* there, .* here"):
        other.resume(path)
    assert_same_state(learned(other.model), before)
    assert not other.catching_up and not other.evaluations and not other.evaluator.metrics[0].groups


def test_an_evaluation_of_a_time_that_is_gone_is_refused(small_vit, stream, tmp_path):
    path = tmp_path / "run.safetensors"
    strategy = make(small_vit)
    run(strategy, stream)
    strategy.save(path)
    resumed = make(small_vit)
    resumed.resume(path)
    with pytest.raises(RuntimeError, match=r"no evaluation of \[\['test', 0, 12\]\] after 0 mini-batches"):
        resumed.eval(stream.test_stream[:1])
    resumed.train(online_stream(stream.train_stream[:1], 10), eval_streams=[])
    with pytest.raises(RuntimeError, match=r"\['test', 1, 9\].* after 4 mini-batches"):
        resumed.eval(stream.test_stream[:2])
    assert resumed.eval(stream.test_stream[:1])["A_n/eval_phase/test_stream"] > 0
    assert resumed.catching_up


def test_what_is_no_number_is_named(small_vit, stream, tmp_path):
    def metrics():
        return [*f2ocl_metrics(), confusion_matrix_metrics(num_classes=10, save_image=False, stream=True)]

    path = tmp_path / "run.safetensors"
    strategy = make(small_vit, metrics=metrics)
    expected = run(strategy, stream)
    name = "ConfusionMatrix_Stream/eval_phase/test_stream"
    assert isinstance(expected[0][name], torch.Tensor) and strategy.evaluations[0].not_kept == [name]
    strategy.save(path)
    resumed = make(small_vit, metrics=metrics)
    resumed.resume(path)
    with pytest.warns(UserWarning, match=f"from the checkpoint lack {name}") as caught:
        returned = run(resumed, stream)
    assert len([w for w in caught if "from the checkpoint lack" in str(w.message)]) == 1
    assert same(returned, [{n: v for n, v in metrics.items() if n != name} for metrics in expected])


class Experience:
    def __init__(self, stream, number, samples):
        self.origin_stream = type("Stream", (), {"name": stream})
        self.current_experience, self.dataset = number, range(samples)


def test_they_are_found_by_when_and_what():
    first, second = [Experience("test", 0, 5)], [Experience("test", 0, 5), Experience("test", 1, 4)]
    evaluations = [
        Evaluation.of(2, first, {"a": 0.5, "nan": math.nan, "matrix": torch.eye(2)}),
        Evaluation.of(4, second, {"a": 0.25}),
        Evaluation.of(4, first, {"a": 0.75}),
    ]
    assert evaluations[0].not_kept == ["matrix"] and evaluations[0].metrics.keys() == {"a", "nan"}
    evaluations = [Evaluation.read(evaluation.as_values()) for evaluation in evaluations]
    known = KnownEvaluations(evaluations)
    assert known.to_come(0) and known.take(0, first) is None and known.take(4, first).metrics == {"a": 0.75}
    assert known.passed(2) == [] and known.passed(3) == evaluations[:1] and known.to_come(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert known.take(4, second) is evaluations[1]
    assert not known.to_come(4)


def test_those_of_version_0_1_come_in_their_order():
    known = KnownEvaluations([Evaluation.read({"a": 0.5}), Evaluation.read({"a": 0.25})])
    assert known.to_come(10**6) and not known.passed(10**6)
    taken = [known.take(number, []) for number in (3, 1)]
    assert [e.as_values() for e in taken] == [{"a": 0.5}, {"a": 0.25}] and not known.to_come(0)
