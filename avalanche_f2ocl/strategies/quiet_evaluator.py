"""Avalanche's evaluation plugin without callbacks that no metric or logger uses, and without needless warnings."""

import warnings
from collections.abc import Callable

from avalanche.core import SupervisedPlugin
from avalanche.evaluation import PluginMetric
from avalanche.training.plugins import EvaluationPlugin


class QuietEvaluator:
    """Takes the place of an evaluation plugin among a strategy's plugins.

    Avalanche's plugin answers to every callback, fourteen in a training mini-batch, and copies the experience in each.
    This one answers only to callbacks that one of its metrics or loggers implements, and when a value waits for the
    loggers.

    Args:
        evaluator: Avalanche's plugin.

    Example:
        >>> quiet = QuietEvaluator(EvaluationPlugin(loggers=[]))
        >>> hasattr(quiet.evaluator, "before_forward"), hasattr(quiet, "before_forward")
        (True, False)
    """

    def __init__(self, evaluator: EvaluationPlugin) -> None:
        self.evaluator = evaluator

    def __getattr__(self, name: str):
        if name.startswith("__") or (name.startswith(("before_", "after_")) and not self._is_heard(name)):
            raise AttributeError(name)
        return getattr(self.evaluator, name)

    def _is_heard(self, callback: str) -> bool:
        evaluator = self.evaluator
        if evaluator._metric_values or hasattr(type(evaluator), callback):
            return True
        return any(_implements(listener, callback) for listener in (*evaluator.metrics, *evaluator.loggers))


def or_silent(
    evaluator: EvaluationPlugin | Callable[[], EvaluationPlugin] | None,
) -> EvaluationPlugin | Callable[[], EvaluationPlugin]:
    """The given evaluation plugin; for None, one without metrics and loggers, which Avalanche would warn about.

    Example:
        >>> or_silent(None).metrics
        []
    """
    if evaluator is not None:
        return evaluator
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No loggers specified")
        return EvaluationPlugin(loggers=[])


def _implements(listener: object, callback: str) -> bool:
    """Whether ``listener`` implements the callback itself, beyond the empty one of its base class."""
    method = getattr(listener, callback, None)
    empty = (getattr(base, callback, None) for base in (PluginMetric, SupervisedPlugin))
    return method is not None and getattr(method, "__func__", method) not in empty
