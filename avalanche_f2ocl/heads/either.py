"""Class means under prompts, where they have shown that they are better than those without."""

from collections.abc import Sequence

import torch
from torch import Tensor

from avalanche_f2ocl.heads.ensemble import EnsembleHead
from avalanche_f2ocl.heads.head import SumHead
from avalanche_f2ocl.heads.solution import Solution
from avalanche_f2ocl.state.keys import key_scores

DEVIATIONS = 2
"""By how many standard deviations the first head must have been right more often."""


class EitherHead(EnsembleHead):
    r"""The second of two heads, and the first one beside it as soon as that has proved better.

    Before a mini-batch is learned, each head's class means tell its samples apart by cosine similarity, among those of
    its classes that have been learned before. With :math:`b` samples that the first head alone had right so far and
    :math:`c` that the second one alone had, the first has half of the say while

    .. math:: b - c > 2 \sqrt{b + c}

    which is McNemar's test at about the level of 0.02. Absent classes are no candidates: a head whose sums of old
    classes are stale would look better on present ones.

    Args:
        heads: two; the vectors are as long as their features together.

    Attributes:
        first_alone, second_alone: ``(capacity,)`` int64, b and c by class.

    Raises:
        ValueError: not two heads.

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
            raise ValueError(f"heads: {len(heads)} heads; two are wanted")
        super().__init__(heads, vote="equal")
        self.register_rows("first_alone", dtype=torch.int64, summed=True)
        self.register_rows("second_alone", dtype=torch.int64, summed=True)

    @torch.no_grad()
    def judge(self, vectors: Tensor, rows: Tensor) -> None:
        """Compares the heads on ``vectors (B, F)`` of the classes ``rows (B,)`` int64, before they are learned."""
        self._count(vectors, rows, 1)

    @torch.no_grad()
    def remove(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """As of other heads; then judges again and takes that out: the verdict is that of before, unless more came."""
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
        """Of both heads, ``(2,)`` float64: a half each if the first has proved better, else 0 and 1."""
        first, second = self.used("first_alone").sum(), self.used("second_alone").sum()
        better = first - second > DEVIATIONS * (first + second).double().sqrt()
        return torch.stack([0.5 * better, 1 - 0.5 * better]).double()
