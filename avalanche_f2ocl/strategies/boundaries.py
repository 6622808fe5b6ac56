"""The ends of tasks, for those methods that must be told."""

from abc import abstractmethod
from typing import Any

from avalanche.benchmarks import OnlineCLExperience
from avalanche.core import SupervisedPlugin


class AtBoundaries(SupervisedPlugin):
    """Calls :meth:`at_boundary` at the end of a plain experience, or of a call of ``train`` on an online stream.

    It is not called at boundaries that a resumed run skips.
    """

    _online = False

    @abstractmethod
    def at_boundary(self, strategy: Any) -> None:
        """A task has ended."""

    def after_training_exp(self, strategy: Any, **kwargs: Any) -> None:
        self._online = isinstance(strategy.experience, OnlineCLExperience)
        if not (self._online or strategy.catching_up):
            self.at_boundary(strategy)

    def after_training(self, strategy: Any, **kwargs: Any) -> None:
        if self._online and not strategy.catching_up:
            self.at_boundary(strategy)


class EndTask(AtBoundaries):
    """Tells the model that a task has ended."""

    def at_boundary(self, strategy: Any) -> None:
        strategy.model.end_task()
