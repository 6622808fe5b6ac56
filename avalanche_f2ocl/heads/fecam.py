"""Nearest class mean by a Mahalanobis distance with a covariance for each class."""

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.state.class_means import ClassMeans, mask_unseen
from avalanche_f2ocl.state.rows import add_to_rows

AT_ONCE = 16
"""Number of samples whose outer products are made together, and of classes whose distances are."""


class FeCAMHead(ClassMeans):
    r"""FeCAM: a covariance for each class, shrunk and scaled to unit variances.

    Let :math:`\mu` and :math:`\Sigma` be the mean and covariance of class c's vectors divided by their length,
    :math:`V_1` the mean of the covariance's diagonal, and :math:`V_2` the mean of its other entries. Then

    .. math:: \Sigma_s = \Sigma + \gamma_1 V_1 I + \gamma_2 V_2 (1 - I), \quad
        \hat\Sigma_{ij} = \Sigma_{s,ij} / \sqrt{\Sigma_{s,ii} \Sigma_{s,jj}}, \quad
        d(x) = (x - \mu)^\top \hat\Sigma^{-1} (x - \mu),

    and the logit is :math:`-d(x)`. The head needs no boundaries and keeps no samples, but it keeps ``8 F**2`` bytes for
    each class, and as many again from the first prediction after an update. A class with one sample has the identity as
    its covariance.

    Source: Goswami, Liu, Twardowski and van de Weijer, FeCAM: Exploiting the Heterogeneity of Class Distributions in
    Exemplar-Free Continual Learning, 2023, Eqs. 4-7. Tukey's transformation is left out, as in the authors' code for
    ViTs, whose features may be negative.

    Args:
        dim: length F of the vectors.
        shrinkage: :math:`\gamma_1`; None for 1, as in the authors' code for ViTs.
        off_diagonal: :math:`\gamma_2`; 0 by default, as in that code.

    Attributes:
        moments: sum of ``x x^T`` over each class's vectors x of length 1, ``(capacity, F, F)`` float64.
        unit_sums: sums of these vectors, ``(capacity, F)`` float64.

    Example:
        >>> head = FeCAMHead(dim=2)
        >>> _ = head.add_rows(2)
        >>> head.update(torch.tensor([[1.0, 0.1], [1.0, 0.2], [0.1, 1.0], [0.2, 1.0]]), torch.tensor([0, 0, 1, 1]))
        >>> head.logits(torch.eye(2)).argmax(1).tolist()
        [0, 1]
    """

    MIN_CHUNK = 4
    moments: Tensor
    unit_sums: Tensor

    def __init__(self, dim: int, shrinkage: float | None = None, off_diagonal: float = 0.0) -> None:
        super().__init__(dim)
        self.shrinkage, self.off_diagonal = 1.0 if shrinkage is None else shrinkage, off_diagonal
        self.register_rows("unit_sums", dim, dtype=torch.float64, summed=True)
        self.register_rows("moments", dim, dim, dtype=torch.float64, summed=True)
        self._inverses: Tensor | None = None

    @torch.no_grad()
    def update(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """As of :class:`avalanche_f2ocl.heads.head.SumHead`."""
        super().update(vectors, rows)
        self._sum(vectors, rows, 1)

    @torch.no_grad()
    def remove(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """As of :class:`avalanche_f2ocl.heads.head.SumHead`."""
        self._sum(vectors, rows, -1)
        super().remove(vectors, rows)

    def _sum(self, vectors: Tensor, rows: Tensor, sign: int) -> None:
        self._inverses = None
        units = F.normalize(vectors.double(), dim=1)
        add_to_rows(self.unit_sums, rows, sign * units)
        for part, its_rows in zip(units.split(AT_ONCE), rows.split(AT_ONCE), strict=True):
            add_to_rows(self.moments, its_rows, sign * part.unsqueeze(2) * part.unsqueeze(1))

    @torch.no_grad()
    def prepare(self) -> None:
        """Inverts now what the next prediction would otherwise have to invert."""
        if self._inverses is None or len(self._inverses) != self.num_rows:
            parts = [self._inverse(slice(i, i + AT_ONCE)) for i in range(0, self.num_rows, AT_ONCE)]
            self._inverses = torch.cat([self.moments[:0], *parts])

    def _inverse(self, rows: slice) -> Tensor:
        counts, sums = self.used("counts")[rows], self.used("unit_sums")[rows]
        covariances = class_covariances(self.used("moments")[rows], sums, counts)
        return torch.linalg.pinv(correlations(covariances, self.shrinkage, self.off_diagonal), hermitian=True)

    @torch.no_grad()
    def logits(self, vectors: Tensor) -> Tensor:
        """Scores of ``vectors (B, F)`` for the classes so far: ``(B, C)`` float32."""
        self.prepare()
        assert self._inverses is not None
        counts = self.used("counts")
        units = F.normalize(vectors.double(), dim=1)
        means = self.used("unit_sums") / counts.clamp(min=1).unsqueeze(1)
        distances = [
            torch.einsum("bci,cij,bcj->bc", away, inverses, away)
            for inverses, its_means in zip(self._inverses.split(AT_ONCE), means.split(AT_ONCE), strict=True)
            for away in (units.unsqueeze(1) - its_means,)
        ]
        return mask_unseen(-torch.cat([units[:, :0], *distances], dim=1).float(), counts)

    def remove_row(self, row: int) -> None:
        super().remove_row(row)
        self._inverses = None

    def end_block(self, keep: bool) -> None:
        super().end_block(keep)
        self._inverses = None

    def _load_from_state_dict(self, *args):
        super()._load_from_state_dict(*args)
        self._inverses = None

    def _apply(self, fn, recurse=True):
        self._inverses = None
        return super()._apply(fn, recurse)


def class_covariances(moments: Tensor, sums: Tensor, counts: Tensor) -> Tensor:
    """Unbiased covariances of classes; zero for a class with only one sample.

    Args:
        moments: sums of ``x x^T``, ``(C, F, F)``.
        sums: sums of x, ``(C, F)``.
        counts: numbers of samples, ``(C,)``.

    Returns:
        ``(C, F, F)``.

    Example:
        >>> class_covariances(torch.tensor([[[10.0]]]), torch.tensor([[4.0]]), torch.tensor([2])).item()  # of 1 and 3
        2.0
    """
    means = sums / counts.clamp(min=1).unsqueeze(1)
    scatter = moments - sums.unsqueeze(2) * means.unsqueeze(1)
    return scatter / (counts - 1).clamp(min=1).view(-1, 1, 1) * (counts > 1).view(-1, 1, 1)


def correlations(covariances: Tensor, shrinkage: float = 1.0, off_diagonal: float = 0.0) -> Tensor:
    """Covariances shrunk and scaled to unit variances (FeCAM, Eqs. 5 and 7).

    Args:
        covariances: ``(C, F, F)``.
        shrinkage: this multiple of the mean variance is added to the diagonal.
        off_diagonal: this multiple of the mean of the other entries is added to them.

    Returns:
        ``(C, F, F)``; the identity if all variances are zero.

    Example:
        >>> correlations(torch.tensor([[[1.0, 1.0], [1.0, 3.0]]]), shrinkage=1.5)[0, 0]  # 1 / sqrt(4 * 6)
        tensor([1.0000, 0.2041])
    """
    size = covariances.shape[-1]
    identity = torch.eye(size, dtype=covariances.dtype, device=covariances.device)
    variances = covariances.diagonal(dim1=-2, dim2=-1)
    within = variances.mean(-1).view(-1, 1, 1)
    between = (covariances.sum((-2, -1)) - variances.sum(-1)).view(-1, 1, 1) / max(1, size * (size - 1))
    shrunk = covariances + shrinkage * within * identity + off_diagonal * between * (1 - identity)
    deviations = shrunk.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()
    scale = torch.where(deviations > 0, 1 / deviations, 0.0)
    return torch.where(identity > 0, 1.0, shrunk * scale.unsqueeze(-1) * scale.unsqueeze(-2))
