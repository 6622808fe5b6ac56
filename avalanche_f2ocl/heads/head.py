"""The methods and attributes that models need of a head."""

from typing import NamedTuple, Protocol

from torch import Tensor


class Head(Protocol):
    """Scores embeddings; has a row per class.

    Attributes:
        num_rows: number of classes so far.
        counts: samples seen by row, ``(capacity,)`` int64.
    """

    num_rows: int
    counts: Tensor

    def add_rows(self, count: int) -> slice:
        """Makes room for new classes; returns their rows."""

    def used(self, name: str) -> Tensor:
        """The used rows of one of the head's tensors, for example ``"counts"``."""

    def logits(self, vectors: Tensor) -> Tensor:
        """Scores of ``vectors (B, F)``: ``(B, C)``, where higher is nearer; masked for classes without a sample."""


class Judging(NamedTuple):
    """How a head's scores are used by :class:`avalanche_f2ocl.heads.calibration.Calibration`.

    Attributes:
        samples: power of the number of samples of a class by which its scores are weighted.
        classes: power of the number of classes that the head knew by which scores are weighted.
        growth: the factor by which the number of mini-batches grows from one solution to the next.
        steadiness: number of classes that the typical deviation of logits counts as, next to an image's own deviation.
    """

    samples: float
    classes: float = 0
    growth: float = 1.1
    steadiness: float = 20


class Linear(Protocol):
    """A head whose probabilities can be calibrated without keeping a sample.

    Attributes:
        at_once: whether :meth:`Head.logits` needs nothing to be solved first; the attributes and methods below are then
            not used.
        judging: how its scores count.
        linear_width: number of features P; None if the head is no linear classifier.
    """

    at_once: bool
    judging: Judging
    linear_width: int | None

    def features(self, vectors: Tensor) -> Tensor:
        """The features of vectors: ``(B, F)`` to ``(B, P)``."""

    def linear(self) -> tuple[Tensor, Tensor]:
        """What has been learned so far, solved as a linear classifier: weight ``(C, P)`` and bias ``(C,)``."""


class SumHead(Head, Protocol):
    """A head that learns by summing embeddings, with a mean per class."""

    def update(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """Adds ``vectors (B, F)`` of the classes ``rows (B,)``, once per mini-batch.

        ``images (B, C, H, W)`` are the images that the vectors were made from, needed if copies of an image matter to
        the head.
        """

    def remove(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """Takes out a mini-batch that :meth:`update` added: the head then predicts as if it had never seen it.

        The arguments are those of :meth:`update`. It raises ``ValueError`` if it can tell that some of the images have
        not been learned.
        """

    def merge_row(self, row: int, into: int) -> None:
        """Moves the sums of ``row`` to the row ``into``, as if its samples had been of that class; leaves zeros."""

    def prepare(self) -> None:
        """Does now what the next prediction would otherwise have to do first."""

    def means(self, rows: Tensor | None = None) -> Tensor:
        """Class means, ``(N or C, F)``."""
