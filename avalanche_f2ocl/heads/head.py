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


class SumHead(Head, Protocol):
    """A head that learns by summing embeddings, with a mean per class."""

    def update(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """Adds ``vectors (B, F)`` of the classes ``rows (B,)``, once per mini-batch.

        ``images (B, C, H, W)`` are what the vectors are of, where copies of an image matter to the head.
        """

    def prepare(self) -> None:
        """Does now what the next prediction would else do first."""

    def means(self, rows: Tensor | None = None) -> Tensor:
        """Class means, ``(N or C, F)``."""
