"""Class means under prompts, used once they have proved better than class means without prompts."""

from collections.abc import Sequence

import torch
from torch import Tensor

from avalanche_f2ocl.heads.ensemble import EnsembleHead
from avalanche_f2ocl.heads.head import SumHead
from avalanche_f2ocl.heads.solution import Solution
from avalanche_f2ocl.state.keys import key_scores

DEVIATIONS = 2
"""The number of standard deviations by which the first head must have been right more often."""


class EitherHead(EnsembleHead):
    r"""The second of two heads, joined by the first as soon as the first has proved better.

    Before a mini-batch is learned, each head's class means classify its samples by cosine similarity, among those of
    the mini-batch's classes that have been learned before. Let :math:`b` be the number of samples so far that only the
    first head had right, and :math:`c` the number that only the second had right. The first head has half of the weight
    while

    .. math:: b - c > 2 \sqrt{b + c}

    which is McNemar's test at about the level of 0.02. Absent classes are no candidates: otherwise a head whose sums of
    old classes are stale would look better on present classes.

    Args:
        heads: two heads; the length of the vectors is the sum of the heads' numbers of features.

    Attributes:
        first_alone, second_alone: b and c by class, ``(capacity,)`` int64.

    Raises:
        ValueError: there are not two heads.

    Example:
        >>> from avalanche_f2ocl.heads import NCMHead
        >>> head = EitherHead([NCMHead(2), NCMHead(2)])
        >>> head.weights().tolist()
        [0.0, 1.0]
    """

    first_alone: Tensor
    second_alone: Tensor

    def __init__(self, heads: Sequence[SumHead]) -> None:
        if len(heads) != 2:
            raise ValueError(f"heads: {len(heads)} heads; there must be two")
        super().__init__(heads, vote="equal")
        self.register_rows("first_alone", dtype=torch.int64, summed=True)
        self.register_rows("second_alone", dtype=torch.int64, summed=True)

    @torch.no_grad()
    def judge(self, vectors: Tensor, rows: Tensor) -> None:
        """Compares the heads on ``vectors (B, F)`` of the classes ``rows (B,)`` int64, before they are learned."""
        self._count(vectors, rows, 1)

    @torch.no_grad()
    def remove(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """Takes a mini-batch out as other heads do, and its verdict too, judged again by the remaining sums."""
        super().remove(vectors, rows, images)
        self._count(vectors, rows, -1)
        for counts in (self.first_alone, self.second_alone):
            counts.clamp_(min=0)

    def _count(self, vectors: Tensor, rows: Tensor, sign: int) -> None:
        known = self.counts[rows] > 0
        first, second = (
            (rows[key_scores(part, head.means(rows), self.counts[rows]).argmax(1)] == rows) & known
            for head, part in zip(self.heads, vectors.split(self.widths, dim=1), strict=True)
        )
        self.first_alone.index_add_(0, rows, (first & ~second).long(), alpha=sign)
        self.second_alone.index_add_(0, rows, (second & ~first).long(), alpha=sign)

    def weights(self, solutions: Sequence[Solution] | None = None) -> Tensor:
        """Weights of both heads, ``(2,)`` float64: a half each if the first has proved better, else 0 and 1."""
        first, second = self.used("first_alone").sum(), self.used("second_alone").sum()
        better = first - second > DEVIATIONS * (first + second).double().sqrt()
        return torch.stack([0.5 * better, 1 - 0.5 * better]).double()
