"""The paper's metrics as Avalanche plugin metrics, right on plain and on online streams.

Groups are the experiences that mini-experiences were cut from.
"""

from abc import abstractmethod
from collections.abc import Sized

import numpy as np
import torch
from avalanche.evaluation import PluginMetric
from avalanche.evaluation.metric_results import MetricValue
from avalanche.evaluation.metric_utils import get_metric_name
from torch import Tensor

from avalanche_f2ocl.metrics.accuracy_matrix import average_accuracy, forgetting
from avalanche_f2ocl.rng import generator

__all__ = [
    "AccuracyMatrix",
    "KeyAccuracy",
    "RandomKeyAccuracy",
    "UpperBound",
    "average_accuracy",
    "f2ocl_metrics",
    "forgetting",
]


def origin(experience):
    """The experience that a training experience was cut from, or itself, with all attributes readable."""
    experience = experience.logging()
    return getattr(experience, "origin_experience", experience).logging()


class GroupMetric(PluginMetric):
    """Share of right answers per group (experience of the test stream) trained on so far.

    Subclasses say which answers of an evaluation mini-batch are right.

    Args:
        name: of the emitted value, the mean over groups.
        at_end: only evaluate once every experience of the training stream has been trained on.

    Attributes:
        groups: ids of the experiences trained on, in order.
        per_group: share right by group id at the last evaluation.
    """

    def __init__(self, name: str, at_end: bool = False):
        super().__init__()
        self.name, self.at_end = name, at_end
        self.reset()

    @abstractmethod
    def right(self, strategy) -> Tensor | None:
        """Which samples of the evaluation mini-batch are right, ``(B,)`` bool; None where it does not apply."""

    def reset(self) -> None:
        self.groups: list[int] = []
        self.per_group: dict[int, float] = {}
        self.samples: dict[int, int] = {}
        self._right: dict[int, Tensor] = {}
        self._stream_length: int | None = None

    def state(self) -> dict:
        """What a resumed run needs, as plain values; between evaluations."""
        return {
            "name": self.name,
            "groups": self.groups,
            "per_group": list(self.per_group.items()),
            "samples": list(self.samples.items()),
            "stream_length": self._stream_length,
        }

    def load_state(self, state: dict) -> None:
        """Takes what :meth:`state` gave."""
        self.groups = list(state["groups"])
        self.per_group, self.samples = dict(state["per_group"]), dict(state["samples"])
        self._stream_length = state["stream_length"]

    def result(self) -> float | None:
        """Mean over groups, None before there is anything to average."""
        return float(np.mean(list(self.per_group.values()))) if self.per_group else None

    def before_training_exp(self, strategy):
        experience = origin(strategy.experience)
        if experience.current_experience not in self.groups:
            self.groups.append(experience.current_experience)
            stream = experience.origin_stream
            self._stream_length = len(stream) if isinstance(stream, Sized) else None

    def before_eval(self, strategy):
        self._right, self.samples, self.per_group = {}, {}, {}

    def after_eval_iteration(self, strategy):
        group = strategy.experience.current_experience
        if group not in self.groups or (self.at_end and len(self.groups) != self._stream_length):
            return
        right = self.right(strategy)
        if right is not None:
            self._right[group] = self._right.get(group, 0) + right.sum()
            self.samples[group] = self.samples.get(group, 0) + len(right)

    def after_eval(self, strategy):
        self.per_group = {group: int(right) / self.samples[group] for group, right in self._right.items()}
        self._right = {}
        return [
            MetricValue(self, get_metric_name(name, strategy, add_task=False), value, strategy.clock.train_iterations)
            for name, value in self.values().items()
            if value is not None
        ]

    def values(self) -> dict[str, float | None]:
        """What is emitted after an evaluation, by name."""
        return {self.name: self.result()}

    def __str__(self) -> str:
        return self.name


class AccuracyMatrix(GroupMetric):
    """The accuracy matrix, and A_n (mean over groups, and weighted by samples) and F_n from it.

    After each ``eval``, one row: the accuracy on each group trained on so far. Evaluating again before the
    next group replaces the row. A_n and F_n are emitted when the row covers every group so far.

    Attributes:
        T: ``(n, n)`` float64 after n groups, NaN where nothing was evaluated, rows and columns in the
            order of training.
    """

    def __init__(self):
        super().__init__("A_n")

    def reset(self) -> None:
        super().reset()
        self._rows: dict[int, dict[int, float]] = {}

    def state(self) -> dict:
        return super().state() | {"rows": [[row, list(accuracy.items())] for row, accuracy in self._rows.items()]}

    def load_state(self, state: dict) -> None:
        super().load_state(state)
        self._rows = {row: dict(accuracy) for row, accuracy in state["rows"]}

    def right(self, strategy) -> Tensor:
        return strategy.mb_output.argmax(1) == strategy.mb_y

    @property
    def T(self) -> np.ndarray:
        n = len(self.groups)
        T = np.full((n, n), np.nan)
        for row, accuracy in self._rows.items():
            for column, group in enumerate(self.groups[: row + 1]):
                T[row, column] = accuracy.get(group, np.nan)
        return T

    def values(self) -> dict[str, float | None]:
        if not self.per_group:
            return {}
        self._rows[len(self.groups) - 1] = self.per_group
        T = self.T
        if np.isnan(T[-1]).any():
            return {}
        F_n = forgetting(T)
        return {
            "A_n": average_accuracy(T),
            "A_n_samples": average_accuracy(T, [self.samples[group] for group in self.groups]),
            # Where an earlier row was not evaluated there is no maximum to take.
            "F_n": None if np.isnan(F_n) else F_n,
        }


class KeyAccuracy(GroupMetric):
    """A_k: how often the nearest key is that of the sample's class."""

    def __init__(self):
        super().__init__("A_k")

    def right(self, strategy) -> Tensor | None:
        if not _has_prompts(strategy):
            return None
        return strategy.model.class_ids[strategy.mb_prediction.key_rows[:, 0]] == strategy.mb_y


class UpperBound(GroupMetric):
    """UB: accuracy when every sample gets its own class's prompt; at the end of the stream only."""

    def __init__(self):
        super().__init__("UB", at_end=True)

    def right(self, strategy) -> Tensor | None:
        if not _has_prompts(strategy):
            return None
        return _right_under(strategy, strategy.model.classes.rows(strategy.mb_labels))


class RandomKeyAccuracy(GroupMetric):
    """Accuracy when every sample gets the prompt of a random class; at the end of the stream only."""

    def __init__(self):
        super().__init__("random_key", at_end=True)

    def before_eval(self, strategy):
        super().before_eval(strategy)
        self._draw = generator(getattr(strategy, "seed", 0), "random-key")

    def right(self, strategy) -> Tensor | None:
        if not _has_prompts(strategy):
            return None
        rows = torch.randint(len(strategy.model.classes), strategy.mb_labels.shape, generator=self._draw)
        return _right_under(strategy, rows)


def _has_prompts(strategy) -> bool:
    """Whether the strategy's predictions retrieve prompts; Avalanche's own, for one, do not."""
    return getattr(getattr(strategy, "mb_prediction", None), "key_rows", None) is not None


def _right_under(strategy, rows: Tensor) -> Tensor:
    """Right answers under the prompts of ``rows (B,)`` on the CPU; -1 (no such prompt) is never right."""
    rows = rows.to(strategy.device)
    prediction = strategy.mb_prediction
    logits = strategy.model.logits_under(prediction.tokens, rows.clamp(min=0).unsqueeze(1), prediction.unprompted)
    return (strategy.model.class_ids[logits.argmax(1)] == strategy.mb_y) & (rows >= 0)


def f2ocl_metrics() -> list[PluginMetric]:
    """A_n, A_n_samples, F_n, A_k at every evaluation; UB and random_key at the end of the stream.

    For Avalanche's ``EvaluationPlugin``. Values are fractions; their names end in
    ``/eval_phase/<stream>_stream``. The last three need prompts: other strategies do not emit them.

    Example:
        >>> [str(metric) for metric in f2ocl_metrics()]
        ['A_n', 'A_k', 'UB', 'random_key']
    """
    return [AccuracyMatrix(), KeyAccuracy(), UpperBound(), RandomKeyAccuracy()]
