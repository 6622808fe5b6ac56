"""Eigenvalues of second moments, computed quickly if there are far fewer samples than features."""

import torch
from torch import Tensor

PIVOTS = 32
"""Number of columns that are taken at a time."""
LARGEST_SHARE = 4
"""Samples are few if there are no more than the number of features divided by this."""
ALIKE = 1e-2
"""Eigenvalues of some columns below this share of their largest are left to other columns."""
ROUNDING = 1e-12
"""This share of the moment's trace counts as nothing."""


def eigenpairs(moment: Tensor, samples: int) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors, without those of eigenvalue 0.

    Args:
        moment: second moment of P features, ``(P, P)`` float64, positive semidefinite.
        samples: number N of samples that the moment was summed from; its rank is at most N.

    Returns:
        Values ``(R,)`` and vectors ``(P, R)``, in ``O(P N**2)`` if samples are few and in ``O(P**3)`` otherwise.

    Example:
        >>> x = torch.eye(12, 64).double()
        >>> values, vectors = eigenpairs(x.T @ x, samples=12)
        >>> values.shape, torch.allclose(vectors * values @ vectors.T, x.T @ x)
        (torch.Size([12]), True)
    """
    factor = pivoted_cholesky(moment, samples) if samples <= len(moment) / LARGEST_SHARE else None
    values, vectors = torch.linalg.eigh(moment if factor is None else factor.T @ factor)
    kept = values > ROUNDING * values.sum()
    values, vectors = values[kept], vectors[:, kept]
    return values, vectors if factor is None else factor @ (vectors / values.sqrt())


def pivoted_cholesky(moment: Tensor, rank: int) -> Tensor | None:
    """A factor of a matrix of low rank, from a few of its columns.

    The columns with the largest remaining diagonal entries are taken, several at a time. Source: Chen, Epperly, Tropp
    and Webber, Randomly pivoted Cholesky, 2024, the blocked algorithm, but with the largest pivots.

    Args:
        moment: M, ``(P, P)`` float64, positive semidefinite.
        rank: expected upper bound on the rank of M.

    Returns:
        L, ``(P, R)`` with :math:`L L^T = M` up to rounding and R at most ``rank``; None if that is not reached.

    Example:
        >>> pivoted_cholesky(torch.ones(5, 5).double(), rank=3).flatten().tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    left = moment.diagonal().clone()
    nothing = ROUNDING * left.sum()
    factor = moment.new_empty(len(moment), rank + 1)
    done = 0
    while left.sum() > nothing and done <= rank:
        pivots = left.topk(min(PIVOTS, rank + 1 - done)).indices
        columns = moment[:, pivots] - factor[:, :done] @ factor[pivots, :done].T
        values, vectors = torch.linalg.eigh(columns[pivots])
        kept = values > ALIKE * values[-1]
        new = columns @ (vectors[:, kept] / values[kept].sqrt())
        factor[:, done : done + new.shape[1]] = new
        done += new.shape[1]
        left = (left - new.square().sum(1)).clamp(min=0)
    return factor[:, :done] if done <= rank else None
