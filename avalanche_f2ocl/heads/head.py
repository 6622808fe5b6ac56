"""What models ask of a head."""

from typing import Protocol

from torch import Tensor


class Head(Protocol):
    """Scores embeddings; has a row per class.

    Attributes:
        num_rows: classes so far.
        counts: samples seen by row, ``(capacity,)`` int64.
    """

    num_rows: int
    counts: Tensor

    def add_rows(self, count: int) -> slice:
        """Makes room for new classes; returns their rows."""

    def used(self, name: str) -> Tensor:
        """The used rows of one of its tensors, as ``"counts"``."""

    def logits(self, vectors: Tensor) -> Tensor:
        """Scores of ``vectors (B, F)``: ``(B, C)``, higher is nearer, masked where a class has had no sample."""


class Linear(Protocol):
    """A head of which it can be told, without a sample being kept, how honest its probabilities are.

    Attributes:
        at_once: whether :meth:`Head.logits` needs nothing to be solved first; what follows is then not asked for.
        count_power: by which power of a class's samples its scores count, see
            :class:`avalanche_f2ocl.heads.calibration.Calibration`.
        linear_width: features P; None where the head is none of the kind.
        hold_growth: by what factor the mini-batches grow between two that it is solved after.
    """

    at_once: bool
    count_power: int
    linear_width: int | None
    hold_growth: float

    def features(self, vectors: Tensor) -> Tensor:
        """``(B, F)`` to ``(B, P)``."""

    def linear(self) -> tuple[Tensor, Tensor]:
        """What has been learned so far as a linear classifier, solved for now: weight ``(C, P)`` and bias ``(C,)``."""


class SumHead(Head, Protocol):
    """A head that learns by summing embeddings, with a mean per class."""

    def update(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """Adds ``vectors (B, F)`` of the classes ``rows (B,)``, once per mini-batch.

        ``images (B, C, H, W)`` are what the vectors are of, where copies of an image matter to the head.
        """

    def remove(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """Takes a mini-batch that :meth:`update` added out again: the head predicts as if it had never seen it.

        Arguments are those of :meth:`update`; ``ValueError`` where it can tell that some of the images are not in it.
        """

    def merge_row(self, row: int, into: int) -> None:
        """Gives what is summed for a row to another, as if the samples had been of that class; leaves zeros."""

    def prepare(self) -> None:
        """Does now what the next prediction would else do first."""

    def means(self, rows: Tensor | None = None) -> Tensor:
        """Class means, ``(N or C, F)``."""
