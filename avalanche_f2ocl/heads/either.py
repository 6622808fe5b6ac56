"""Class means under prompts, used once they have proved to help class means without prompts."""

from collections.abc import Sequence

import torch
from torch import Tensor

from avalanche_f2ocl.heads.ensemble import EnsembleHead
from avalanche_f2ocl.heads.head import SumHead
from avalanche_f2ocl.heads.solution import Solution
from avalanche_f2ocl.state.keys import key_scores

DEVIATIONS = 3
"""The number of standard deviations by which both heads must have been right more often than the second alone.

The counts are looked at after every mini-batch, so two deviations would often be reached by chance at some time."""


class EitherHead(EnsembleHead):
    r"""The second of two heads, joined by the first as soon as the first has proved to help.

    Before a mini-batch is learned, its samples are classified by the cosine similarities to the second head's class
    means, and by the sum of those of both heads, among those of the mini-batch's classes that have been learned before.
    Let :math:`b` be the number of samples so far that were right only with the first head, and :math:`c` the number
    that were right only without it. The first head has half of the weight while

    .. math:: b - c > 3 \sqrt{b + c}

    which is McNemar's test at about the level of 0.001 for each look at the counts. If the first head helped and harmed
    equally often, it would be used at some time in at most 2 of 100 streams with 300 samples that are right under one
    head only; with two deviations, in 20. Absent classes are no candidates: otherwise a head whose sums of old classes
    are stale would look better on present classes.

    Args:
        heads: two heads; the length of the vectors is the sum of the heads' numbers of features.

    Attributes:
        helped, harmed: b and c by class, ``(capacity,)`` int64.

    Raises:
        ValueError: there are not two heads.

    Example:
        >>> from avalanche_f2ocl.heads import NCMHead
        >>> head = EitherHead([NCMHead(2), NCMHead(2)])
        >>> head.weights().tolist()
        [0.0, 1.0]
    """

    helped: Tensor
    harmed: Tensor

    def __init__(self, heads: Sequence[SumHead]) -> None:
        if len(heads) != 2:
            raise ValueError(f"heads: {len(heads)} heads; there must be two")
        super().__init__(heads, vote="equal")
        self.register_rows("helped", dtype=torch.int64, summed=True)
        self.register_rows("harmed", dtype=torch.int64, summed=True)

    @torch.no_grad()
    def judge(self, vectors: Tensor, rows: Tensor) -> None:
        """Compares both heads with the second on ``vectors (B, F)`` of classes ``rows (B,)`` int64, not yet learned."""
        self._count(vectors, rows, 1)

    @torch.no_grad()
    def remove(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """Takes a mini-batch out as other heads do, and its verdict too, judged again by the remaining sums."""
        super().remove(vectors, rows, images)
        self._count(vectors, rows, -1)
        for counts in (self.helped, self.harmed):
            counts.clamp_(min=0)

    def _count(self, vectors: Tensor, rows: Tensor, sign: int) -> None:
        known = self.counts[rows] > 0
        first, second = (
            key_scores(part, head.means(rows), self.counts[rows])
            for head, part in zip(self.heads, vectors.split(self.widths, dim=1), strict=True)
        )
        both, alone = ((rows[scores.argmax(1)] == rows) & known for scores in (first + second, second))
        self.helped.index_add_(0, rows, (both & ~alone).long(), alpha=sign)
        self.harmed.index_add_(0, rows, (alone & ~both).long(), alpha=sign)

    def weights(self, solutions: Sequence[Solution] | None = None) -> Tensor:
        """Weights of both heads, ``(2,)`` float64: a half each if the first has proved to help, else 0 and 1."""
        helped, harmed = self.used("helped").sum(), self.used("harmed").sum()
        helps = helped - harmed > DEVIATIONS * (helped + harmed).double().sqrt()
        return torch.stack([0.5 * helps, 1 - 0.5 * helps]).double()
