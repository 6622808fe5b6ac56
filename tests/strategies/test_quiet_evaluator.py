"""The evaluator is called where something listens, and nowhere else."""

import copy
import csv
import pickle
import warnings

import pytest
from avalanche.core import SupervisedPlugin
from avalanche.evaluation.metrics import accuracy_metrics, loss_metrics
from avalanche.logging import BaseLogger, CSVLogger
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import ViTNCM, f2ocl_metrics
from avalanche_f2ocl.baselines import ER
from avalanche_f2ocl.strategies.quiet_evaluator import QuietEvaluator
from tests.helpers import train_online

CALLBACKS = [name for name in dir(SupervisedPlugin) if name.startswith(("before_", "after_"))]


class Recorder(BaseLogger, SupervisedPlugin):
    """A logger that notes values, and when it is called."""

    def __init__(self):
        super().__init__()
        self.values, self.calls = [], []

    def log_single_metric(self, name, value, x_plot):
        self.values.append((name, value, x_plot))

    def after_training_exp(self, strategy, metric_values, **kwargs):
        self.calls.append(len(metric_values))


def heard(*metrics, loggers=()):
    quiet = QuietEvaluator(EvaluationPlugin(*metrics, loggers=list(loggers)))
    return {name for name in CALLBACKS if hasattr(quiet, name)}


def test_only_callbacks_with_a_listener_are_answered():
    assert heard() == {"before_eval"}
    assert not {name for name in heard(f2ocl_metrics()) if name.startswith(("before_training_it", "after_training_it"))}
    assert "after_training_iteration" in heard(accuracy_metrics(minibatch=True))
    assert heard(loggers=[Recorder()]) == {"before_eval", "after_training_exp"}


def test_a_value_that_waits_is_delivered_at_the_next_callback():
    quiet = QuietEvaluator(EvaluationPlugin(loggers=[]))
    quiet.evaluator._metric_values.append("value")
    assert hasattr(quiet, "before_forward")


def test_a_callback_of_the_evaluators_own_class_is_answered():
    class Own(EvaluationPlugin):
        def after_training_exp(self, strategy, **kwargs):
            """Something of its own."""

    assert hasattr(QuietEvaluator(Own(loggers=[])), "after_training_exp")


def test_values_and_logger_calls_are_those_of_the_plain_evaluator(vit, digits):
    def run(quiet):
        logger = Recorder()
        metrics = accuracy_metrics(minibatch=True, epoch=True, stream=True), loss_metrics(experience=True)
        strategy = ViTNCM(backbone=vit, evaluator=EvaluationPlugin(*metrics, loggers=[logger]))
        if not quiet:
            strategy.plugins = [p.evaluator if isinstance(p, QuietEvaluator) else p for p in strategy.plugins]
        train_online(strategy, digits.train_stream[:1])
        strategy.eval(digits.test_stream[:1])
        return logger.values, logger.calls

    values, calls = run(quiet=True)
    assert str((values, calls)) == str(run(quiet=False))  # in which NaN is like NaN
    assert len(values) > 5 and len(calls) > 1


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_it_can_be_copied(duplicate):
    quiet = duplicate(QuietEvaluator(EvaluationPlugin(loggers=[])))
    assert quiet.collect_all and not hasattr(quiet, "before_forward")


def test_training_without_an_evaluator_warns_of_nothing(vit, digits):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in (ViTNCM, ER):
            train_online(method(backbone=vit, evaluator=None), digits.train_stream[:1])


def test_avalanches_csv_has_the_accuracies(vit, digits, tmp_path):
    evaluator = EvaluationPlugin(*accuracy_metrics(experience=True), loggers=[CSVLogger(tmp_path)])
    strategy = ViTNCM(backbone=vit, evaluator=evaluator)
    train_online(strategy, digits.train_stream)
    known = [value for name, value in strategy.eval(digits.test_stream).items() if name.startswith("Top1_Acc_Exp")]
    with open(tmp_path / "eval_results.csv", newline="") as file:
        written = [float(row["eval_accuracy"]) for row in csv.DictReader(file)]
    assert written == pytest.approx(known, abs=1e-4) and min(written) > 0
