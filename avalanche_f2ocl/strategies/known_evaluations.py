"""Evaluations recorded in a checkpoint, with the time and the experiences of each."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Evaluation:
    """The result of one call of ``eval``.

    Attributes:
        iterations: number of training mini-batches before it; None in files of version 0.1, which keep only the order.
        what: stream, number and size of each experience evaluated.
        metrics: those metrics that are numbers, by name; NaN included.
        not_kept: names of the metrics that are no numbers.
    """

    iterations: int | None
    what: list[list[Any]]
    metrics: dict[str, float]
    not_kept: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, iterations: int, experiences: Iterable[Any], metrics: dict[str, Any]) -> "Evaluation":
        """The evaluation of ``experiences`` that gave ``metrics``."""
        numbers = {name: value for name, value in metrics.items() if isinstance(value, (int, float))}
        return cls(iterations, describe(experiences), numbers, sorted(metrics.keys() - numbers.keys()))

    @classmethod
    def read(cls, values: dict[str, Any]) -> "Evaluation":
        """An evaluation from the values of a file, which may be of version 0.1."""
        return cls(**values) if "iterations" in values else cls(None, [], values)

    def as_values(self) -> dict[str, Any]:
        """The values that go into a file."""
        return self.metrics if self.iterations is None else asdict(self)


def describe(experiences: Iterable[Any]) -> list[list[Any]]:
    """Stream, number and size of each experience."""
    readable = (e.logging() if hasattr(e, "logging") else e for e in experiences)
    return [[e.origin_stream.name, e.current_experience, len(e.dataset)] for e in readable]


class KnownEvaluations:
    """The evaluations of a checkpoint that the resumed script has not asked for yet.

    Args:
        evaluations: evaluations in the order in which they were made.
    """

    def __init__(self, evaluations: Sequence[Evaluation] = ()) -> None:
        self._waiting = list(evaluations)
        self._warned = False

    def to_come(self, iterations: int) -> bool:
        """Whether any were made after ``iterations`` or more training mini-batches."""
        return any(e.iterations is None or e.iterations >= iterations for e in self._waiting)

    def passed(self, iterations: int) -> list[Evaluation]:
        """Takes out those made before ``iterations``, for example within mini-batches that are not learned again."""
        gone = [e for e in self._waiting if e.iterations is not None and e.iterations < iterations]
        self._waiting = [e for e in self._waiting if e not in gone]
        return gone

    def take(self, iterations: int, experiences: Iterable[Any]) -> Evaluation | None:
        """Takes out the evaluation of ``experiences`` made after ``iterations`` mini-batches; None without one."""
        what = describe(experiences)
        for evaluation in self._waiting:
            if evaluation.iterations is None or (evaluation.iterations, evaluation.what) == (iterations, what):
                self._waiting.remove(evaluation)
                self._warn_of_missing(evaluation)
                return evaluation
        return None

    def _warn_of_missing(self, evaluation: Evaluation) -> None:
        if evaluation.not_kept and not self._warned:
            self._warned = True
            warnings.warn(
                f"evaluations from the checkpoint lack {', '.join(evaluation.not_kept)}, which are no numbers and so "
                "not in the file",
                stacklevel=2,
            )
