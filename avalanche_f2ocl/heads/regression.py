"""Ridge regression on one-hot labels from sums, and how well it predicts by generalised cross-validation."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from avalanche_f2ocl.heads.low_rank import eigenpairs

SMALLEST_SCALE = 1e-150
"""The least penalty, used if all features are zero: its square is still a positive number."""

ROUNDED_AWAY = 1e-9
"""A remainder outside the features' span below this share of the labels' squares counts as nothing."""

SAFETY = 2
"""Penalties that the sums do not support are raised to this multiple of the largest such penalty."""
TOLERANCE = 1e-6
"""Allowance for rounding where a class's sum is compared with its number of samples."""


class Regression(NamedTuple):
    """A solved ridge regression.

    Attributes:
        weight: W, ``(C, P)`` float64.
        penalty: added to the moment's diagonal, float64 scalar.
        error: error of generalised cross-validation, summed over samples and outputs, float64 scalar.
    """

    weight: Tensor
    penalty: Tensor
    error: Tensor


def gcv_ridge(
    moment: Tensor, sums: Tensor, samples: Tensor, distinct: Any = None, counts: Tensor | None = None
) -> Regression:
    r"""Ridge regression on one-hot labels with the penalty of least generalised cross-validation error.

    The candidates :math:`\lambda` are 41 penalties from 1e-6 to 100 times the moment's mean eigenvalue, evenly spaced
    by their logarithm. The chosen one has the least

    .. math::
        \frac{\lVert Y - X W_\lambda \rVert^2}{(1 - \operatorname{tr} H_\lambda / N_d)^2}, \quad
        H_\lambda = X (X^\top X + \lambda I)^{-1} X^\top

    which needs only the sums, since :math:`\lVert Y \rVert^2 = N`. Copies do not change the solution:
    r times the same data have r times the error at r times the penalty.

    Args:
        moment: :math:`X^\top X`, ``(P, P)`` float64.
        sums: :math:`Y^\top X`, ``(C, P)`` float64.
        samples: number N of samples.
        distinct: :math:`N_d`, the number of samples that are no copies of others; by default N.
        counts: samples of each class, ``(C,)``, to find penalties that the sums do not support, see :func:`supported`.

    Returns:
        The regression with the chosen penalty.

    Example:
        >>> gcv_ridge(torch.eye(2).double() * 4, torch.eye(2).double() * 4, 8).weight.shape
        torch.Size([2, 2])
    """
    values, vectors = eigenpairs(moment, int(samples))
    scale = (moment.trace() / len(moment)).clamp(min=SMALLEST_SCALE)
    penalties = scale * torch.logspace(-6, 2, 41, dtype=values.dtype, device=values.device)
    if counts is not None and not are_of_samples(moment, sums, values, vectors, counts):
        penalties, values, vectors = supported(penalties, moment, sums, counts)
    return _best(values, vectors, sums, penalties, samples, samples if distinct is None else distinct)


def given_ridge(
    moment: Tensor, sums: Tensor, penalty: float, samples: Tensor, distinct: Any = None, counts: Tensor | None = None
) -> Regression:
    """Ridge regression on one-hot labels with a given penalty; the other arguments are those of :func:`gcv_ridge`.

    Example:
        >>> given_ridge(torch.eye(1).double() * 4, torch.ones(1, 1).double() * 5, 5.0, 9).weight
        tensor([[0.5556]], dtype=torch.float64)
    """
    distinct = samples if distinct is None else distinct
    penalties = moment.new_tensor([penalty])
    factor, failed = torch.linalg.cholesky_ex(regular(moment, penalty))
    weight = torch.cholesky_solve(sums.T, factor).T
    if failed or (counts is not None and _beyond((weight * sums).sum(1), counts).any()):
        # The penalty is lost in the moment's rounding, or the sums do not support it.
        values, vectors = eigenpairs(moment, int(samples))
        if counts is not None and not are_of_samples(moment, sums, values, vectors, counts):
            larger = penalty * torch.logspace(0, 10, 51, dtype=values.dtype, device=values.device)
            larger, values, vectors = supported(larger, moment, sums, counts)
            penalties = larger[:1]
        return _best(values, vectors, sums, penalties, samples, distinct)
    residual = samples - (weight * sums).sum() - penalty * weight.square().sum()
    freedom = len(moment) - penalty * torch.cholesky_inverse(factor).trace()
    return Regression(weight, penalties[0], _error(residual, freedom, distinct))


def are_of_samples(moment: Tensor, sums: Tensor, values: Tensor, vectors: Tensor, counts: Tensor) -> bool:
    r"""Whether a moment and class sums can come from the same samples, up to rounding.

    For any n samples of a class, the moment M has no negative eigenvalue, their sum s lies in its span, and
    :math:`s^\top M^{+} s \le n`. This no longer holds if samples are taken out with other values than they were added
    with, for example embedded under a prompt that has moved since.

    Args:
        moment: M, ``(P, P)``.
        sums: s by class, ``(C, P)``.
        values, vectors: the moment's positive eigenvalues ``(R,)`` and their eigenvectors ``(P, R)``.
        counts: n by class, ``(C,)``.

    Example:
        >>> one = torch.ones(1, 1)
        >>> [are_of_samples(one * 9, one * s, one[0] * 9, one, torch.tensor([1])) for s in (3.0, 4.0)]
        [True, False]
    """
    rotated, trace = sums @ vectors, moment.trace()
    outside = sums.square().sum() - rotated.square().sum()
    whole = ((values.sum() - trace).abs() <= ROUNDED_AWAY * trace) & (outside <= TOLERANCE * sums.square().sum())
    return bool(whole & ~_beyond((rotated.square() / values).sum(1), counts).any())


def supported(penalties: Tensor, moment: Tensor, sums: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Raises penalties that are too small for sums from which samples were taken out inexactly.

    Such samples leave a remainder in the sums (see :func:`are_of_samples`), which a small penalty would fit. The sums
    support a penalty :math:`\lambda` if :math:`s^\top (M + \lambda I)^{-1} s \le n` holds for all classes.

    Args:
        penalties: ascending, ``(K,)``.
        moment, sums, counts: those of :func:`are_of_samples`.

    Returns:
        The penalties, raised to at least ``SAFETY`` times the largest unsupported one; the moment's positive
        eigenvalues ``(R,)``; their eigenvectors ``(P, R)``.

    Example:
        >>> one = torch.ones(1, 1)
        >>> supported(torch.tensor([0.1, 1.0, 9.0]), one, one * 2, torch.tensor([3]))[0]
        tensor([0.2000, 1.0000, 9.0000])
    """
    values, vectors = torch.linalg.eigh(moment)
    fitted = (sums @ vectors).square() @ (1 / (values.unsqueeze(1) + penalties))
    wrong = _beyond(fitted, counts.unsqueeze(1)).any(0) | (penalties <= -values[0])
    positive = values > 0
    return torch.maximum(penalties, SAFETY * (penalties * wrong).max()), values[positive], vectors[:, positive]


def _beyond(fitted: Tensor, counts: Tensor) -> Tensor:
    return fitted > counts * (1 + TOLERANCE) + TOLERANCE


def regular(moment: Tensor, penalty: float | Tensor) -> Tensor:
    """A copy of the moment with a penalty added to its diagonal."""
    copy = moment.clone()
    copy.diagonal().add_(penalty)
    return copy


def root_mean_square(weight: Tensor, moment: Tensor, samples: Tensor) -> Tensor:
    r"""The root mean square of linear outputs over the samples that a moment was summed from.

    Args:
        weight: W, ``(C, P)``.
        moment: :math:`X^\top X`, ``(P, P)``.
        samples: number N of samples, at least 1.

    Returns:
        :math:`\sqrt{w_c^\top X^\top X w_c / N}`, ``(C,)``; the root of the smallest positive number if that is 0.

    Example:
        >>> root_mean_square(torch.tensor([[1.0, 1.0]]), torch.eye(2) * 4, torch.tensor(2)).tolist()
        [2.0]
    """
    return root_of_mean(((weight @ moment) * weight).sum(1), samples)


def root_of_mean(squares: Tensor, samples: Any) -> Tensor:
    """The root of sums of squares ``(C,)`` divided by a number of samples; never 0."""
    return (squares / samples).clamp(min=torch.finfo(squares.dtype).tiny).sqrt()


def predicted_share(error: Tensor, samples: Any) -> Tensor:
    """R2, the share of the labels' squares that is predicted, in [0, 1 - 1e-6]; no evidence would justify 1."""
    return (1 - error / samples).clamp(0, 1 - 1e-6)


def _best(values: Tensor, vectors: Tensor, sums: Tensor, penalties: Tensor, samples: Any, distinct: Any) -> Regression:
    """The best of ``penalties (K,)``, from the moment's positive eigenvalues ``(R,)`` and eigenvectors ``(P, R)``."""
    rotated = sums @ vectors
    explained = rotated.square().sum(0) / values
    outside = samples - explained.sum()
    outside = outside * (outside > ROUNDED_AWAY * samples)
    left = penalties / (values.unsqueeze(1) + penalties)  # a subtraction would lose small values with few samples
    residual = outside + left.square().T @ explained
    distinct = torch.as_tensor(distinct).clamp(min=len(values))
    error = residual / ((distinct - len(values) + left.sum(0)) / distinct) ** 2
    best = error.argmin()
    weight = (rotated / (values + penalties[best])) @ vectors.T
    return Regression(weight, penalties[best], error[best])


def _error(residual: Tensor, freedom: Tensor, distinct: Any) -> Tensor:
    return residual / (1 - freedom / distinct).clamp(min=1e-6) ** 2
