"""Streaming linear discriminant analysis."""

from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.heads.second_moments import SecondMomentHead
from avalanche_f2ocl.heads.solution import Settings, Solution

EPSILON = 1e-9
"""Of the mean second moment, added to every variance: with sums that leave a variance zero, the nearest mean wins."""


class LDAHead(SecondMomentHead):
    """Gaussian classes with one shared covariance; logits are log posteriors up to a constant per sample.

    The covariance is the pooled one within classes, every sample counting alike, shrunk towards a multiple of the
    identity. Solving takes ``O(F**3)``.

    Source: Hayes and Kanan, Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis, 2020;
    shrinkage: Chen et al., Shrinkage Algorithms for MMSE Covariance Estimation, 2010.

    Args:
        dim: length F of the vectors.
        shrinkage: share of the identity in [0, 1]; None for the oracle approximating one (OAS), from the sums.
        priors: ``"equal"``, or ``"counts"`` for each class's share of the samples.

    Example:
        >>> head = LDAHead(dim=2)
        >>> _ = head.add_rows(2)
        >>> head.update(torch.tensor([[0.0, 0], [0, 2], [3, 0], [3, 2]]), torch.tensor([0, 0, 1, 1]))
        >>> head.logits(torch.tensor([[1.0, 9.0], [2.0, -9.0]])).argmax(1)
        tensor([0, 1])
    """

    def __init__(self, dim: int, shrinkage: float | None = None, priors: str = "equal") -> None:
        super().__init__(dim)
        self.shrinkage, self.priors = shrinkage, priors

    def settings(self) -> Settings:
        return 0, -1 if self.shrinkage is None else self.shrinkage, self.priors == "counts"

    def solve(self, moment: Tensor, total: Tensor, distinct: Tensor) -> Solution:
        sums, counts = self.used("sums"), self.used("counts").clamp(min=1).unsqueeze(1)
        means = sums / counts
        covariance = shrunk((moment - sums.T @ means) / total, distinct, self.shrinkage)
        floor = EPSILON * moment.diagonal().mean() / total
        covariance.diagonal().add_(floor.clamp(min=torch.finfo(floor.dtype).tiny))
        # From the mean over classes: features in which they agree must not drown the rest by rounding.
        centre = means.mean(0)
        weight = torch.linalg.solve(covariance, (means - centre).T).T
        bias = -(weight * (means + centre)).sum(1) / 2
        if self.priors == "counts":
            bias = bias + (counts / total).log().squeeze(1)
        return Solution(weight, bias, torch.ones_like(bias))


def shrunk(covariance: Tensor, samples: Tensor, shrinkage: Any = None) -> Tensor:
    r"""Shrinks a covariance S towards the identity: :math:`(1-\rho) S + \rho\,\frac{\operatorname{tr} S}{p} I`.

    Args:
        covariance: ``(p, p)``.
        samples: their number.
        shrinkage: rho in [0, 1]; None for OAS (Chen et al., 2010, Eq. 23, as scikit-learn's ``oas``).

    Returns:
        ``(p, p)``.

    Example:
        >>> shrunk(torch.tensor([[1.0, 0.0], [0.0, 3.0]]), 10, 0.5)
        tensor([[1.5000, 0.0000],
                [0.0000, 2.5000]])
    """
    p = len(covariance)
    mean_variance = covariance.trace() / p
    if shrinkage is None:
        mean_square = covariance.square().mean()
        numerator = mean_square + mean_variance**2
        denominator = (samples + 1) * (mean_square - mean_variance**2 / p)
        shrinkage = torch.where(denominator > 0, (numerator / denominator).clamp(max=1), 1)
    return (1 - shrinkage) * covariance + shrinkage * mean_variance * torch.eye(
        p, dtype=covariance.dtype, device=covariance.device
    )
