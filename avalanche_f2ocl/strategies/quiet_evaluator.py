"""Avalanche's evaluation plugin without the callbacks that nothing listens to, and without needless warnings."""

import warnings
from collections.abc import Callable

from avalanche.core import SupervisedPlugin
from avalanche.evaluation import PluginMetric
from avalanche.training.plugins import EvaluationPlugin


class QuietEvaluator:
    """Stands for an evaluation plugin among a strategy's plugins.

    The plugin answers to every callback, fourteen in a training mini-batch, and copies the experience in each. Here it
    answers to those that one of its metrics or loggers implements, or when a value waits for the loggers.

    Args:
        evaluator: the plugin.

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
    """An evaluation plugin; of None one without metrics and loggers, which Avalanche would warn of.

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
    """Whether it has the callback, and not just the empty one of its base class."""
    method = getattr(listener, callback, None)
    empty = (getattr(base, callback, None) for base in (PluginMetric, SupervisedPlugin))
    return method is not None and getattr(method, "__func__", method) not in empty
