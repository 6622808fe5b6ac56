"""Streaming linear discriminant analysis."""

from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.heads.projection import random_features as make_features
from avalanche_f2ocl.heads.second_moments import SecondMomentHead
from avalanche_f2ocl.heads.solution import Settings, Solution
from avalanche_f2ocl.options import RandomFeatures

EPSILON = 1e-9
"""This share of the mean second moment is added to every variance: if all variances are 0, the nearest mean wins."""


class LDAHead(SecondMomentHead):
    """Linear discriminant analysis: Gaussian classes share one covariance; logits are log posteriors up to a constant.

    The constant is the same for all classes of a sample. The covariance is pooled within classes, with every sample
    counting alike, and shrunk towards a multiple of the identity. Solving takes ``O(F**3)``.

    Source: Hayes and Kanan, Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis, 2020;
    shrinkage: Chen et al., Shrinkage Algorithms for MMSE Covariance Estimation, 2010.

    Args:
        dim: length F of the vectors.
        shrinkage: share of the identity, in [0, 1]; None for oracle approximating shrinkage (OAS), from the sums.
        priors: ``"equal"``, or ``"counts"`` for each class's share of the samples.
        projection: number P of random features of the vectors; None or 0 for the vectors themselves.
        seed, random_features, gamma: seed, kind and kernel width of the projection, see
            :func:`avalanche_f2ocl.heads.projection.random_features`.

    Example:
        >>> head = LDAHead(dim=2)
        >>> _ = head.add_rows(2)
        >>> head.update(torch.tensor([[0.0, 0], [0, 2], [3, 0], [3, 2]]), torch.tensor([0, 0, 1, 1]))
        >>> head.logits(torch.tensor([[1.0, 9.0], [2.0, -9.0]])).argmax(1)
        tensor([0, 1])
    """

    def __init__(
        self,
        dim: int,
        shrinkage: float | None = None,
        priors: str = "equal",
        projection: int | None = None,
        seed: int = 0,
        random_features: RandomFeatures = "relu",
        gamma: float | None = None,
    ) -> None:
        super().__init__(dim, make_features(dim, projection, seed, random_features, gamma) if projection else None)
        self.shrinkage, self.priors = shrinkage, priors

    def settings(self) -> Settings:
        return 0, -1 if self.shrinkage is None else self.shrinkage, self.priors == "counts"

    def solve(self, moment: Tensor, total: Tensor, distinct: Tensor) -> Solution:
        means, covariance = self.feature_means(), self.covariance(moment, total, distinct)
        weight = torch.linalg.solve(covariance, centred(means).T).T
        bias = offsets(weight, means)
        if self.priors == "counts":
            bias = bias + (self.used("counts").clamp(min=1) / total).log()
        return Solution(weight, bias, torch.ones_like(bias))

    def covariance(self, moment: Tensor, total: Tensor, distinct: Tensor) -> Tensor:
        """The shrunk covariance within classes, ``(P, P)``; the arguments are those of :meth:`solve`."""
        covariance = shrunk(self.pooled(moment, total), distinct, self.shrinkage)
        floor = EPSILON * moment.diagonal().mean() / total
        covariance.diagonal().add_(floor.clamp(min=torch.finfo(floor.dtype).tiny))
        return covariance

    def precision(self) -> Tensor:
        """The inverse of the shrunk covariance within classes, of what has been learned so far, ``(P, P)``."""
        return torch.linalg.inv_ex(self.covariance(*self.problem())).inverse

    def feature_means(self) -> Tensor:
        """Class means of the features, ``(C, P)`` float64; zero for classes without a sample."""
        return self.used(self.feature_sums_name) / self.used("counts").clamp(min=1).unsqueeze(1)

    def pooled(self, moment: Tensor, total: Tensor) -> Tensor:
        """The covariance within classes, ``(P, P)``, with every sample counting alike."""
        return (moment - self.used(self.feature_sums_name).T @ self.feature_means()) / total


def centred(means: Tensor) -> Tensor:
    """Class means ``(C, P)`` less their mean, since large common values would drown their differences in rounding."""
    return means - means.mean(0)


def offsets(weight: Tensor, means: Tensor) -> Tensor:
    r"""The term to add to :math:`w_c^\top x` to get class c's log likelihood, up to a constant of all classes.

    Args:
        weight: W, the :func:`centred` means times an inverse covariance, ``(C, P)``.
        means: class means, ``(C, P)``.

    Returns:
        ``(C,)``.

    Example:
        >>> means = torch.tensor([[0.0], [2.0]])
        >>> offsets(centred(means), means).tolist()  # 2x - 2 apart, as -(x - 0)^2 / 2 and -(x - 2)^2 / 2 are
        [0.5, -1.5]
    """
    return -(weight * (means + means.mean(0))).sum(1) / 2


def shrunk(covariance: Tensor, samples: Tensor, shrinkage: Any = None) -> Tensor:
    r"""Shrinks a covariance S towards the identity: :math:`(1-\rho) S + \rho\,\frac{\operatorname{tr} S}{p} I`.

    Args:
        covariance: ``(p, p)``.
        samples: number of samples.
        shrinkage: rho in [0, 1]; None for OAS (Chen et al., 2010, Eq. 23, as in scikit-learn's ``oas``).

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
