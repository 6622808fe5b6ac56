"""Heads that each see a part of the features and add up their logits."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from avalanche_f2ocl.state.class_means import ClassMeans, mask_unseen


class EnsembleHead(ClassMeans):
    """The sum of the logits of heads that learn side by side, each from its part of the vectors.

    A part whose sums have gone stale, or in which classes are not as they were in training, is outvoted by the other;
    a single head on all of it would lean on it.

    Args:
        heads: with as many features each as the vectors have parts of equal length.

    Attributes:
        heads: the same.

    Example:
        >>> import torch
        >>> from avalanche_f2ocl.heads import RidgeHead
        >>> head = EnsembleHead([RidgeHead(2, projection=0, ridge=1.0, priors="counts") for _ in range(2)])
        >>> _ = head.add_rows(2)
        >>> head.update(torch.eye(2).repeat(1, 2), torch.tensor([0, 1]))
        >>> head.logits(torch.eye(2).repeat(1, 2)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    heads: Any

    def __init__(self, heads: Sequence[ClassMeans]) -> None:
        super().__init__(sum(head.sums.shape[1] for head in heads))
        self.heads = nn.ModuleList(heads)

    def add_rows(self, count: int) -> slice:
        for head in self.heads:
            head.add_rows(count)
        return super().add_rows(count)

    def update(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        super().update(vectors, rows)
        for head, part in zip(self.heads, vectors.chunk(len(self.heads), dim=1), strict=True):
            head.update(part, rows, images)

    def prepare(self) -> None:
        """Solves now what the next prediction would else solve first."""
        for head in self.heads:
            head.prepare()

    def logits(self, vectors: Tensor) -> Tensor:
        """Scores of ``vectors (B, F)`` for the classes so far: ``(B, C)`` float32."""
        parts = vectors.chunk(len(self.heads), dim=1)
        logits = sum(head.logits(part) for head, part in zip(self.heads, parts, strict=True))
        return mask_unseen(logits, self.used("counts"))
