"""Accuracy by groups as Avalanche plugin metrics that are right on plain and on online streams.

Groups are the experiences that mini-experiences were cut from.
"""

import warnings
from abc import abstractmethod
from collections.abc import Sized
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from avalanche.evaluation import PluginMetric
from avalanche.evaluation.metric_results import MetricValue
from torch import Tensor

from avalanche_f2ocl.metrics.accuracy_matrix import average_accuracy, forgetting


def origin(experience):
    """The experience that a training experience was cut from, or itself, with all attributes readable."""
    experience = experience.logging()
    return getattr(experience, "origin_experience", experience).logging()


@dataclass
class StreamCounts:
    """Counts of right answers on one stream in one evaluation.

    Attributes:
        right, samples: numbers by group, for groups trained on. If the stream's experiences are no groups, because the
            training stream has another number of experiences, all samples are counted under None.
    """

    right: dict[int | None, Any] = field(default_factory=dict)
    samples: dict[int | None, int] = field(default_factory=dict)

    @property
    def shares(self) -> dict[int | None, float]:
        """The share of right answers by group."""
        return {group: int(right) / self.samples[group] for group, right in self.right.items()}


class GroupMetric(PluginMetric):
    """Share of right answers for each group (experience of an evaluated stream) trained on so far.

    Evaluated streams are distinguished by name; a value's name ends in ``/eval_phase/<stream>_stream``. A stream
    with as many experiences as the training stream is evaluated by groups. Any other stream, such as one joint test
    set, has no groups: the share over all its samples counts, and a warning says so once. A value that an earlier
    evaluation gave and a later one does not is emitted as NaN, so that no outdated value is shown.

    Subclasses say which answers of an evaluation mini-batch are right.

    Args:
        name: name of the emitted value, the mean over groups.
        at_end: whether to evaluate only once every experience of the training stream has been trained on.

    Attributes:
        groups: ids of the experiences trained on, in order.
        evaluated: counts by stream at the last evaluation.
    """

    def __init__(self, name: str, at_end: bool = False):
        super().__init__()
        self.name, self.at_end = name, at_end
        self.reset()

    @abstractmethod
    def right(self, strategy) -> Tensor | None:
        """Which samples of the evaluation mini-batch are right, ``(B,)`` bool; None if the metric does not apply."""

    def reset(self) -> None:
        self.groups: list[int] = []
        self.evaluated: dict[str, StreamCounts] = {}
        self._stream_length: int | None = None
        self._emitted: set[str] = set()
        self._warned = False

    def state(self) -> dict:
        """The state that a resumed run needs, as plain values; call it between evaluations."""
        emitted = sorted(self._emitted)
        return {"name": self.name, "groups": self.groups, "stream_length": self._stream_length, "emitted": emitted}

    def load_state(self, state: dict) -> None:
        """Restores a state that :meth:`state` gave, which may be of version 0.1."""
        self.groups, self._stream_length = list(state["groups"]), state["stream_length"]
        self._emitted = set(state.get("emitted", ()))

    def result(self) -> float | None:
        """The mean over the groups of the last evaluation; None if there is nothing to average yet."""
        shares = [share for counts in self.evaluated.values() for share in counts.shares.values()]
        return float(np.mean(shares)) if shares else None

    def before_training_exp(self, strategy):
        experience = origin(strategy.experience)
        if experience.current_experience not in self.groups:
            self.groups.append(experience.current_experience)
            stream = experience.origin_stream
            self._stream_length = len(stream) if isinstance(stream, Sized) else None

    def before_eval(self, strategy):
        self.evaluated = {}

    def after_eval_iteration(self, strategy):
        stream, group = strategy.experience.origin_stream, strategy.experience.current_experience
        counts = self.evaluated.setdefault(stream.name, StreamCounts())
        if not self.groups or (self.at_end and len(self.groups) != self._stream_length):
            return
        if not self._has_groups(stream):
            group = None
        elif group not in self.groups:
            return
        right = self.right(strategy)
        if right is not None:
            counts.right[group] = counts.right.get(group, 0) + right.sum()
            counts.samples[group] = counts.samples.get(group, 0) + len(right)

    def _has_groups(self, stream: Any) -> bool:
        return self._stream_length is None or len(stream) == self._stream_length

    def after_eval(self, strategy):
        iterations, results = strategy.clock.train_iterations, []
        for stream in self.evaluated:
            for name, value in self.values(stream, iterations).items():
                full = f"{name}/eval_phase/{stream}_stream"
                if value is not None or full in self._emitted:
                    self._emitted.add(full)
                    results.append(MetricValue(self, full, float("nan") if value is None else value, iterations))
        return results

    def values(self, stream: str, iterations: int) -> dict[str, float | None]:
        """The values emitted for a stream after an evaluation, by name.

        Args:
            stream: name of the stream.
            iterations: number of training mini-batches before the evaluation.
        """
        shares = list(self.evaluated[stream].shares.values())
        return {self.name: float(np.mean(shares)) if shares else None}

    def __str__(self) -> str:
        return self.name


class AccuracyMatrix(GroupMetric):
    """The accuracy matrix of each evaluated stream, and from it A_n (mean over groups, or over samples) and F_n.

    Each ``eval`` fills one row: the accuracy on each group trained on so far. Evaluating again before the next group
    replaces the row; evaluating other groups without training in between completes it. A_n and F_n are emitted when
    the row covers every group so far. For a stream without groups, A_n_samples is the accuracy over all its samples.
    """

    def __init__(self):
        super().__init__("A_n")

    def reset(self) -> None:
        super().reset()
        # By stream and row: the number of mini-batches trained on by then, and the accuracy by group.
        self._rows: dict[str, dict[int, tuple[int, dict[int, float]]]] = {}
        self._samples: dict[str, dict[int, int]] = {}

    def state(self) -> dict:
        rows = [[s, r, i, list(a.items())] for s, of in self._rows.items() for r, (i, a) in of.items()]
        samples = [[stream, list(of.items())] for stream, of in self._samples.items()]
        return super().state() | {"stream_rows": rows, "stream_samples": samples}

    def load_state(self, state: dict) -> None:
        super().load_state(state)
        # Version 0.1 did not distinguish streams and did not record the time.
        old = [["test", row, -1, accuracy] for row, accuracy in state.get("rows", ())]
        self._rows = {}
        for stream, row, iterations, accuracy in state.get("stream_rows", old):
            self._rows.setdefault(stream, {})[row] = (iterations, dict(accuracy))
        samples = state.get("stream_samples", [["test", state.get("samples", ())]])
        self._samples = {stream: dict(of) for stream, of in samples}

    def right(self, strategy) -> Tensor:
        return strategy.mb_output.argmax(1) == strategy.mb_y

    @property
    def T(self) -> np.ndarray:
        """The :meth:`matrix` of the stream named "test", or else of the stream evaluated first."""
        return self.matrix("test" if "test" in self._rows else next(iter(self._rows), "test"))

    def matrix(self, stream: str) -> np.ndarray:
        """The accuracy matrix of a stream.

        Args:
            stream: name of the stream.

        Returns:
            ``(n, n)`` float64 after n groups, NaN where nothing was evaluated, rows and columns in the
            order of training.
        """
        n = len(self.groups)
        T = np.full((n, n), np.nan)
        for row, (_, accuracy) in self._rows.get(stream, {}).items():
            for column, group in enumerate(self.groups[: row + 1]):
                T[row, column] = accuracy.get(group, np.nan)
        return T

    def values(self, stream: str, iterations: int) -> dict[str, float | None]:
        figures: dict[str, float | None] = {"A_n": None, "A_n_samples": None, "F_n": None}
        shares, samples = self.evaluated[stream].shares, self.evaluated[stream].samples
        if None in shares:
            self._warn(stream)
            return figures | {"A_n_samples": shares[None]}
        if not shares:
            return figures
        row, rows = len(self.groups) - 1, self._rows.setdefault(stream, {})
        at, known = rows.get(row, (iterations, {}))
        by_group = {group: share for group, share in shares.items() if group is not None}
        rows[row] = iterations, (known if at == iterations else {}) | by_group
        self._samples.setdefault(stream, {}).update((g, n) for g, n in samples.items() if g is not None)
        T = self.matrix(stream)
        if np.isnan(T[-1]).any():
            return figures
        F_n = forgetting(T)
        return {
            "A_n": average_accuracy(T),
            "A_n_samples": average_accuracy(T, [self._samples[stream][group] for group in self.groups]),
            # If an earlier row was not evaluated, there is no maximum to take.
            "F_n": None if np.isnan(F_n) else F_n,
        }

    def _warn(self, stream: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"the stream {stream!r} has another number of experiences than the training stream, which has "
                f"{self._stream_length}: there is no accuracy by groups (A_n, F_n), only A_n_samples, over all samples",
                stacklevel=2,
            )
