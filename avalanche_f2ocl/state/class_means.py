"""Running means per class, the statistic of both prototypes and keys."""

import torch
from torch import Tensor

from avalanche_f2ocl.state.rows import ClassRows, add_to_rows

MASKED_LOGIT = -1e9
"""Logit of a class that may not be predicted; finite, so that losses on it stay finite."""



class ClassMeans(ClassRows):
    """Exact mean per class of all vectors seen so far (paper, Eq. 8).

    Sums are float64: the mean does not depend on how the stream was cut into mini-batches.

    Args:
        dim: length D of the vectors.

    Attributes:
        sums: ``(capacity, D)`` float64.
        counts: ``(capacity,)`` int64, the number of vectors summed.

    Example:
        >>> means = ClassMeans(dim=1)
        >>> _ = means.add_rows(1)
        >>> means.update(torch.tensor([[1.0], [2.0]]), torch.tensor([0, 0]))
        >>> means.means().tolist()
        [[1.5]]
    """

    sums: Tensor
    counts: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_rows("sums", dim, dtype=torch.float64, summed=True)
        self.register_rows("counts", dtype=torch.int64, summed=True)

    @torch.no_grad()
    def update(self, vectors: Tensor, rows: Tensor) -> None:
        """Adds ``vectors (B, D)`` to the classes ``rows (B,)`` int64."""
        add_to_rows(self.sums, rows, vectors.double())
        self.counts.index_add_(0, rows, torch.ones_like(rows))

    @torch.no_grad()
    def remove(self, vectors: Tensor, rows: Tensor) -> None:
        """Takes out ``vectors (B, D)`` of the classes ``rows (B,)`` int64, which :meth:`update` added."""
        add_to_rows(self.sums, rows, -vectors.double())
        self.counts.index_add_(0, rows, torch.ones_like(rows), alpha=-1)
        filled = self.counts[rows] > 0
        for sums in (getattr(self, name) for name in self.sum_names):
            sums[rows] *= filled.view(-1, *(1,) * (sums.dim() - 1))  # without samples, no rounding error may remain

    def means(self, rows: Tensor | None = None) -> Tensor:
        """Means of ``rows (N,)`` or of all C classes, ``(N or C, D)`` float32; zero for classes without a vector."""
        chosen = slice(self.num_rows) if rows is None else rows
        sums, counts = self.sums[chosen], self.counts[chosen]
        return (sums / counts.clamp(min=1).unsqueeze(1)).float()


def mask_unseen(logits: Tensor, counts: Tensor) -> Tensor:
    """``logits (B, C)``, masked where ``counts (C,)`` is 0."""
    return logits.masked_fill(counts == 0, MASKED_LOGIT)
