r"""Recursive least squares, which keep a ridge regression current, one mini-batch at a time.

Given :math:`P = (X^\top X + \lambda I)^{-1}`, adding B samples takes ``O(B F**2)`` for F features.
"""

import torch
from torch import Tensor

from avalanche_f2ocl.heads.regression import regular

LARGEST_CONDITION = 1e8
"""Largest condition number of the penalised moment: outputs are wrong by about this times 2e-16 of their scale, even
after many steps."""
LEAST_LEFT = 1e-6
"""The outputs' squares are a difference; if less than this share of it remains, rounding makes it unreliable."""


def well_conditioned(moment: Tensor, features: Tensor, penalty: float) -> bool:
    """Whether the outputs stay right to 1e-6 of their scale in spite of rounding, step after step.

    Args:
        moment: ``(F, F)`` float64.
        features: features of samples that may not be in the moment yet, ``(B, F)``.
        penalty: penalty of the regression.

    Example:
        >>> [well_conditioned(torch.eye(2), torch.ones(1, 2), penalty) for penalty in (1e-6, 1e-8)]
        [True, False]
    """
    return bool(moment.trace() + features.square().sum() < LARGEST_CONDITION * penalty)


def inverse_of(moment: Tensor, penalty: float) -> Tensor | None:
    r"""The inverse :math:`(X^\top X + \lambda I)^{-1}`, in ``O(F**3)``.

    Args:
        moment: ``(F, F)`` float64.
        penalty: :math:`\lambda`.

    Returns:
        ``(F, F)``; None if rounding makes the matrix singular.

    Example:
        >>> inverse_of(torch.eye(1).double(), 3.0).item()
        0.25
    """
    factor, failed = torch.linalg.cholesky_ex(regular(moment, penalty))
    return None if failed else torch.cholesky_inverse(factor)


def downdate(inverse: Tensor, features: Tensor) -> Tensor | None:
    r"""Adds more samples to :math:`P`, in place, by the Woodbury identity.

    Args:
        inverse: :math:`P`, ``(F, F)`` float64; do not use it any more if None is returned.
        features: :math:`X` of the samples, ``(B, F)`` float64.

    Returns:
        The gain :math:`X P` with the new P, ``(B, F)``; None if rounding errors would become visible.

    Example:
        >>> inverse = torch.eye(1).double()
        >>> downdate(inverse, torch.tensor([[3.0]]).double()), inverse
        (tensor([[0.3000]], dtype=torch.float64), tensor([[0.1000]], dtype=torch.float64))
    """
    spread = features @ inverse
    inner = spread @ features.T
    factor, failed = torch.linalg.cholesky_ex(regular(inner, 1.0))
    if failed:
        return None
    half = torch.linalg.solve_triangular(factor, spread, upper=False)
    inverse.addmm_(half.T, half, alpha=-1)
    return torch.linalg.solve_triangular(factor.T, half, upper=True)


def corrected(weight: Tensor, features: Tensor, rows: Tensor, gain: Tensor) -> Tensor:
    """The least squares weights of one-hot labels after more samples: their errors, times the gain, are added.

    Args:
        weight: weights before, ``(C, F)`` float64, zero for new classes.
        features: features of the samples, ``(B, F)`` float64.
        rows: classes of the samples, ``(B,)`` int64.
        gain: the gain from :func:`downdate`.

    Returns:
        ``(C, F)``.

    Example:
        >>> one = torch.ones(1, 1).double()
        >>> corrected(one * 0, one * 3, torch.tensor([0]), one * 0.3).tolist()
        [[0.3]]
    """
    wrong = -(features @ weight.T)
    wrong[torch.arange(len(rows), device=rows.device), rows] += 1
    return torch.addmm(weight, wrong.T, gain)


def output_squares(weight: Tensor, sums: Tensor, penalty: float) -> Tensor | None:
    r"""The sum of each output's squares over all samples, :math:`w_c^\top X^\top X w_c`, without using the moment.

    Args:
        weight: the solution :math:`W = S (X^\top X + \lambda I)^{-1}`, ``(C, F)``.
        sums: S, ``(C, F)``.
        penalty: :math:`\lambda`.

    Returns:
        ``(C,)``; None if rounding errors would become visible, as under a penalty much larger than the moment.

    Example:
        >>> output_squares(torch.tensor([[0.5]]), torch.tensor([[4.0]]), 4.0).tolist()
        [1.0]
    """
    fitted = (weight * sums).sum(1)
    squares = fitted - penalty * weight.square().sum(1)
    return None if (squares < LEAST_LEFT * fitted).any() else squares
