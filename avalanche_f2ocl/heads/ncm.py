"""Nearest class mean."""

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.heads.head import Judging
from avalanche_f2ocl.state.class_means import ClassMeans, mask_unseen


class NCMHead(ClassMeans):
    """Nearest-class-mean classifier (paper, Eqs. 2, 8 and 11).

    Args:
        dim: length D of the embeddings.
        metric: ``"cosine"`` (logit = cosine similarity to the prototype) or ``"euclidean"`` (logit =
            minus the Euclidean distance).

    Example:
        >>> head = NCMHead(dim=2)
        >>> _ = head.add_rows(2)
        >>> head.update(torch.eye(2), torch.tensor([0, 1]))
        >>> head.logits(torch.tensor([[3.0, 0.0]])).tolist()
        [[1.0, 0.0]]
    """

    at_once = True
    judging = Judging(samples=2)

    def __init__(self, dim: int, metric: str = "cosine") -> None:
        super().__init__(dim)
        self.metric = metric

    def update(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """Adds to sums and counts as :class:`ClassMeans` does; copies count like any other sample."""
        super().update(vectors, rows)

    def remove(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """Takes samples out of sums and counts as :class:`ClassMeans` does."""
        super().remove(vectors, rows)

    def prepare(self) -> None:
        """Does nothing, since class means need no preparation."""

    def logits(self, z: Tensor) -> Tensor:
        """Scores of ``z (B, D)`` for the classes so far: ``(B, C)`` float32."""
        z, prototypes = z.float(), self.means()
        if self.metric == "cosine":
            scores = F.normalize(z, dim=1) @ F.normalize(prototypes, dim=1).T
        else:
            # Computed row by row: cdist's matrix-product shortcut rounds differently in batches of different size.
            scores = -torch.cdist(z, prototypes, compute_mode="donot_use_mm_for_euclid_dist")
        return mask_unseen(scores, self.used("counts"))
