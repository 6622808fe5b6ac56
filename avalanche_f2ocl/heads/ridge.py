"""Ridge regression on one-hot labels, on random features if wanted."""

from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.heads.projection import RandomProjection
from avalanche_f2ocl.heads.second_moments import SecondMomentHead


class RidgeHead(SecondMomentHead):
    """Linear regression of one-hot labels, without intercept, a class's output in units of its root mean square.

    Least squares sees rare classes so seldom that it hardly answers for them. Hence each output is divided by its root
    mean square over the samples so far, which the sums give; with as many samples of each class little changes.

    Solving takes ``O(P**3)`` for P features: measured on one core of a server, see benchmarks/README.md.

    Source: random features and ridge for frozen backbones: McDonnell et al., RanPAC: Random Projections and
    Pre-trained Models for Continual Learning, 2023. Generalised cross-validation: Golub, Heath and Wahba, 1979.

    Args:
        dim: length F of the vectors.
        projection: features P of the random projection with ReLU; 0 for the vectors themselves. None for 5,000
            where there is a CUDA device and 2,000 elsewhere, or those of the file that is loaded.
        ridge: added to the moment's diagonal; None to choose it by generalised cross-validation from the sums.
        priors: ``"equal"``, as above; ``"counts"`` for the regression's own outputs, which grow with a class's share.
        seed: of the projection.

    Attributes:
        projection: draws the features; None without.

    Example:
        >>> head = RidgeHead(dim=2, projection=0, ridge=1.0, priors="counts")
        >>> _ = head.add_rows(2)
        >>> head.update(torch.eye(2), torch.tensor([0, 1]))
        >>> head.logits(torch.eye(2)).tolist()
        [[0.5, 0.0], [0.0, 0.5]]
    """

    def __init__(
        self,
        dim: int,
        projection: int | None = None,
        ridge: float | None = None,
        priors: str = "equal",
        seed: int = 0,
    ) -> None:
        width = default_width() if projection is None else projection
        super().__init__(dim, width or None)
        self.ridge, self.priors, self._any_width = ridge, priors, projection is None
        self.projection = RandomProjection(dim, width, seed) if width else None

    def features(self, vectors: Tensor) -> Tensor:
        return (vectors if self.projection is None else self.projection(vectors)).double()

    def solve(self, moment: Tensor, total: Tensor, distinct: Tensor) -> tuple[Tensor, Tensor]:
        targets = self.used(self.feature_sums_name)
        if self.ridge is None:
            weight = gcv_ridge(moment, targets, total, distinct)
        else:
            regular = moment.clone()
            regular.diagonal().add_(self.ridge)
            weight = torch.linalg.solve(regular, targets.T).T
        if self.priors == "equal":
            weight = weight / root_mean_square(weight, moment, total)
        return weight, weight.new_zeros(len(weight))

    def _load_from_state_dict(self, state_dict, prefix, *args):
        moment = state_dict.get(f"{prefix}moment")
        if self.projection is not None and self._any_width and moment is not None and moment.shape != self.moment.shape:
            width = len(moment)
            self.projection.draw(width)
            self.moment = self.moment.new_zeros(width, width)
            self.feature_sums = self.feature_sums.new_zeros(len(self.feature_sums), width)
        super()._load_from_state_dict(state_dict, prefix, *args)


def default_width() -> int:
    """Random features that are solved for in seconds."""
    return 5000 if torch.cuda.is_available() else 2000


def root_mean_square(weight: Tensor, moment: Tensor, samples: Tensor) -> Tensor:
    r"""Of linear outputs over the samples that a moment was summed from.

    Args:
        weight: W, ``(C, P)``.
        moment: :math:`X^\top X`, ``(P, P)``.
        samples: N, at least 1.

    Returns:
        :math:`\sqrt{w_c^\top X^\top X w_c / N}`, ``(C, 1)``; the smallest positive number where that is 0.

    Example:
        >>> root_mean_square(torch.tensor([[1.0, 1.0]]), torch.eye(2) * 4, torch.tensor(2)).item()
        2.0
    """
    square = ((weight @ moment) * weight).sum(1, keepdim=True) / samples
    return square.clamp(min=torch.finfo(weight.dtype).tiny).sqrt()


def gcv_ridge(moment: Tensor, sums: Tensor, samples: Tensor, distinct: Any = None) -> Tensor:
    r"""Ridge regression on one-hot labels with the penalty of least generalised cross-validation error.

    Of the penalties :math:`\lambda` from 1e-6 to 100 times the moment's mean eigenvalue, 41 evenly spaced by their
    logarithm, the one with the least

    .. math::
        \frac{\lVert Y - X W_\lambda \rVert^2}{(1 - \operatorname{tr} H_\lambda / N_d)^2}, \quad
        H_\lambda = X (X^\top X + \lambda I)^{-1} X^\top

    which needs nothing but the sums, since :math:`\lVert Y \rVert^2 = N`. Copies leave it where it was:
    r times the same data are r times the error at r times the penalty.

    Args:
        moment: :math:`X^\top X`, ``(P, P)`` float64.
        sums: :math:`Y^\top X`, ``(C, P)`` float64.
        samples: N.
        distinct: :math:`N_d`, the samples that are no copies of others; default N.

    Returns:
        Weights ``(C, P)`` float64.

    Example:
        >>> gcv_ridge(torch.eye(2).double() * 4, torch.eye(2).double() * 4, 8).shape
        torch.Size([2, 2])
    """
    values, vectors = torch.linalg.eigh(moment)
    values = values.clamp(min=0).unsqueeze(1)
    scale = values.mean().clamp(min=torch.finfo(values.dtype).tiny)
    penalties = scale * torch.logspace(-6, 2, 41, dtype=values.dtype, device=values.device)
    rotated = sums @ vectors
    power = rotated.square().sum(0).unsqueeze(1)
    residual = samples - ((values + 2 * penalties) / (values + penalties) ** 2 * power).sum(0)
    freedom = (values / (values + penalties)).sum(0)
    error = residual / (1 - freedom / (samples if distinct is None else distinct)).clamp(min=1e-6) ** 2
    best = penalties[error.argmin()]
    return (rotated / (values.squeeze(1) + best)) @ vectors.T
