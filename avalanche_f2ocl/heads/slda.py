"""Linear discriminant analysis as published by Hayes and Kanan, and by Momeni et al. on kernel features."""

import torch
from torch import Tensor

from avalanche_f2ocl.heads.lda import LDAHead, centred, offsets
from avalanche_f2ocl.heads.solution import Settings, Solution
from avalanche_f2ocl.options import RandomFeatures

SHRINKAGE = 1e-4
"""The shrinkage that Hayes and Kanan use."""
KERNEL_FEATURES = 5000
"""The number of random features that Momeni et al. use."""


class SLDAHead(LDAHead):
    r"""Deep streaming linear discriminant analysis, as published.

    The covariance is updated with each sample's deviation from the mean of its class before that sample, which is zero
    for the first sample of a class. With t samples before it,

    .. math:: \Sigma \leftarrow \frac{t \Sigma + \Delta}{t + 1}, \quad
        \Delta = \frac{t}{t + 1} (x - \mu_y) (x - \mu_y)^\top,

    and class c scores :math:`\mu_c^\top \Lambda x - \frac12 \mu_c^\top \Lambda \mu_c` with the pseudoinverse
    :math:`\Lambda = ((1 - \varepsilon) \Sigma + \varepsilon I)^{+}`. So the head depends on the order of the samples,
    but not on how they are cut into mini-batches; :class:`avalanche_f2ocl.heads.LDAHead` has the exact covariance
    within classes.

    When a class is forgotten, its mean goes, but what it added to the covariance stays, since it cannot be separated.

    Source: Hayes and Kanan, Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis, 2020, Eqs. 1-4.

    Args:
        dim: length F of the vectors.
        shrinkage: :math:`\varepsilon` in [0, 1]; None for 1e-4.

    Attributes:
        moment: :math:`t \Sigma`.

    Example:
        >>> head = SLDAHead(dim=1)
        >>> _ = head.add_rows(1)
        >>> head.update(torch.tensor([[3.0], [5.0]]), torch.tensor([0, 0]))
        >>> round(head.moment.item(), 4)  # 1/2 (5 - 3)^2
        2.0
    """

    removes = False

    def __init__(self, dim: int, shrinkage: float | None = None) -> None:
        super().__init__(dim, SHRINKAGE if shrinkage is None else shrinkage)

    def settings(self) -> Settings:
        return 4, self.shrinkage or 0, 0

    def terms(self, features: Tensor, rows: Tensor) -> Tensor:
        # Samples of the same class that come before it in the mini-batch.
        earlier = (rows.unsqueeze(1) == rows).tril(-1).double()
        counts = self.counts[rows] + earlier.sum(1)
        means = (self.sums[rows] + earlier @ features) / counts.clamp(min=1).unsqueeze(1)
        before = self.total_now() + torch.arange(len(rows), device=rows.device)
        return (features - means) * (before / (before + 1)).sqrt().unsqueeze(1)

    def moments(self) -> dict[str, tuple[str, str]]:
        return {}

    def clear(self) -> None:
        super().clear()
        self.moment.zero_()

    def solve(self, moment: Tensor, total: Tensor, distinct: Tensor) -> Solution:
        assert self.shrinkage is not None
        covariance = (1 - self.shrinkage) * moment / total
        covariance.diagonal().add_(self.shrinkage)
        return unshrunk(covariance, self.feature_means())


class KLDAHead(LDAHead):
    """Linear discriminant analysis on kernel features, with the pseudoinverse of the pooled covariance, not shrunk.

    Source: Momeni, Mazumder and Liu, Continual Learning Using a Kernel-Based Method Over Foundation Models, 2024. The
    paper uses 5,000 random Fourier features; the kernel's :math:`\\gamma` is the paper's sigma, set for each backbone.
    All class priors are equal, as in the authors' code.

    Args:
        dim: length F of the vectors.
        projection: number P of features; None for 5,000.
        seed, random_features, gamma: those of :class:`avalanche_f2ocl.heads.LDAHead`; Fourier features by default.

    Example:
        >>> KLDAHead(dim=4, projection=9, gamma=0.1).moment.shape
        torch.Size([9, 9])
    """

    def __init__(
        self,
        dim: int,
        projection: int | None = None,
        seed: int = 0,
        random_features: RandomFeatures = "fourier",
        gamma: float | None = None,
    ) -> None:
        width = KERNEL_FEATURES if projection is None else projection
        super().__init__(dim, None, "equal", width, seed, random_features, gamma)

    def settings(self) -> Settings:
        return 5, 0, 0

    def solve(self, moment: Tensor, total: Tensor, distinct: Tensor) -> Solution:
        return unshrunk(self.pooled(moment, total), self.feature_means())


def unshrunk(covariance: Tensor, means: Tensor) -> Solution:
    """Discriminants of class means ``(C, P)`` under the pseudoinverse of a covariance ``(P, P)``.

    Example:
        >>> unshrunk(torch.diag(torch.tensor([4.0, 0.0])), torch.tensor([[0.0, 0], [8, 5]])).weight.tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
    """
    weight = centred(means) @ torch.linalg.pinv(covariance, hermitian=True)
    bias = offsets(weight, means)
    return Solution(weight, bias, torch.ones_like(bias))
