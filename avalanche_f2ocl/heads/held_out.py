"""Ridge regression with the penalty that is best for held-out samples."""

from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.heads.low_rank import eigenpairs
from avalanche_f2ocl.heads.ridge import RidgeHead
from avalanche_f2ocl.heads.solution import Settings
from avalanche_f2ocl.state.rows import add_to_rows

EVERY = 5
"""Every fifth sample is held out."""
PENALTIES = tuple(10.0**power for power in range(-8, 9))
"""The penalties that are tried."""


class HeldOutRidgeHead(RidgeHead):
    """Ridge regression with RanPAC's rule for the penalty: of 1e-8, 1e-7, ... 1e8, the one of least squared error.

    Every fifth sample is left out of the sums that the penalties are tried on, and added to sums of held-out samples
    instead. These give the squared error without the samples, so that none of them is kept and task boundaries are not
    needed. Predictions are solved from the sums of all samples. RanPAC's own code uses the last fifth of a task; see
    :class:`TaskRidgeHead`. With fewer than five samples the penalty is that of generalised cross-validation.

    Memory is twice that of :class:`RidgeHead`, and choosing the penalty takes another ``O(P**3)``.

    Source: McDonnell et al., RanPAC: Random Projections and Pre-trained Models for Continual Learning, 2023, Eq. 7 and
    Appendix; :func:`held_out_errors`.

    Args:
        dim, projection, ridge, priors, seed, random_features, gamma: those of :class:`RidgeHead`; if ``ridge`` is
            given, no penalty is chosen.

    Attributes:
        held_moment: sum of ``x x^T`` over the features x of held-out samples, ``(P, P)`` float64.
        held_sums: sums of the held-out samples' features by class, ``(capacity, P)`` float64.
        held_counts: number of held-out samples by class, ``(capacity,)`` int64.

    Example:
        >>> head = HeldOutRidgeHead(dim=2, projection=0, priors="counts")
        >>> _ = head.add_rows(2)
        >>> head.update(torch.eye(2).repeat(5, 1), torch.tensor([0, 1] * 5))
        >>> head.held_counts[:2].tolist(), head.logits(torch.eye(2)).round().tolist()
        ([1, 1], [[1.0, 0.0], [0.0, 1.0]])
    """

    held_moment: Tensor
    held_sums: Tensor
    held_counts: Tensor
    KIND = 2
    removes = False

    def __init__(self, dim: int, projection: int | None = None, **options: Any) -> None:
        super().__init__(dim, projection, **options)
        width = len(self.moment)
        self.register_rows("held_sums", width, dtype=torch.float64, summed=True)
        self.register_rows("held_counts", dtype=torch.int64, summed=True)
        self.register_buffer("held_moment", torch.zeros_like(self.moment))

    def settings(self) -> Settings:
        _, ridge, priors = super().settings()
        return self.KIND, ridge, priors

    def moments(self) -> dict[str, tuple[str, str]]:
        return super().moments() | {"held_moment": ("held_sums", "held_counts")}

    def add_sums(self, features: Tensor, rows: Tensor) -> None:
        super().add_sums(features, rows)
        held = is_held_out(self.total_now(), len(rows))
        add_to_rows(self.held_sums, rows, features * held.unsqueeze(1))
        self.held_counts.index_add_(0, rows, held.long())

    def _add(self, terms: Tensor) -> None:
        self.held_moment = self._held_with(terms)
        super()._add(terms)

    def _held_with(self, terms: Tensor) -> Tensor:
        held = terms * is_held_out(self.total, len(terms)).unsqueeze(1)
        return torch.addmm(self.held_moment, held.T, held)

    def held_now(self) -> Tensor:
        """The held-out moment, including samples that wait in an undo block."""
        return self._held_with(torch.cat(self._waiting)) if self._waiting else self.held_moment

    def chosen(self, moment: Tensor) -> float | None:
        if self.ridge is not None:
            return self.ridge
        return self.best_penalty(moment, self.used(self.feature_sums_name))

    def best_penalty(self, moment: Tensor, sums: Tensor) -> float | None:
        """The penalty of least error on samples held out of ``moment (P, P)`` and ``sums (C, P)``; None without any."""
        if not self.held_counts.any():
            return None
        held, held_sums = self.held_now(), self.used("held_sums")
        samples = int(self.total_now())
        penalties = moment.new_tensor(PENALTIES)
        errors = held_out_errors(moment - held, sums - held_sums, held, held_sums, penalties, samples)
        return PENALTIES[int(errors.argmin())]


class TaskRidgeHead(HeldOutRidgeHead):
    """Ridge regression with RanPAC's penalty and boundaries: it is chosen at the end of a task, from this task alone.

    The penalty is used until the next task ends. Before the first task has ended, it is chosen from the samples so far.

    Args:
        dim, projection, ridge, priors, seed, random_features, gamma: those of :class:`RidgeHead`.

    Attributes:
        start_moment, start_sums, start_counts: moment, sums and counts at the beginning of the task.
        penalty: penalty of the last task, float64 scalar; 0 before the first task has ended.

    Example:
        >>> head = TaskRidgeHead(dim=2, projection=0)
        >>> _ = head.add_rows(2)
        >>> head.update(torch.eye(2).repeat(5, 1), torch.tensor([0, 1] * 5))
        >>> head.end_task()
        >>> bool(head.penalty > 0)
        True
    """

    start_moment: Tensor
    start_sums: Tensor
    start_counts: Tensor
    penalty: Tensor
    KIND = 3

    def __init__(self, dim: int, projection: int | None = None, **options: Any) -> None:
        super().__init__(dim, projection, **options)
        self.register_rows("start_sums", len(self.moment), dtype=torch.float64, summed=True)
        self.register_rows("start_counts", dtype=torch.int64, summed=True)
        self.register_buffer("start_moment", torch.zeros_like(self.moment))
        self.register_buffer("penalty", torch.zeros((), dtype=torch.float64))

    def moments(self) -> dict[str, tuple[str, str]]:
        return super().moments() | {"start_moment": ("start_sums", "start_counts")}

    def chosen(self, moment: Tensor) -> float | None:
        return float(self.penalty) or super().chosen(moment)

    @torch.no_grad()
    def end_task(self) -> None:
        """Chooses the penalty from the samples since the last call; do not call it inside a mini-batch."""
        sums = self.used(self.feature_sums_name)
        best = self.best_penalty(self.moment - self.start_moment, sums - self.used("start_sums"))
        if best is not None and self.ridge is None:
            self.penalty.fill_(best)
        self.start_moment.copy_(self.moment)
        self.start_sums[: self.num_rows] = sums
        self.start_counts.copy_(self.counts)
        for name in ("held_moment", "held_sums", "held_counts"):
            getattr(self, name).zero_()
        self._solution = None

    def clear(self) -> None:
        super().clear()
        self.penalty.zero_()


def is_held_out(before: Tensor, count: int) -> Tensor:
    """Which of ``count`` samples are held out if ``before`` (int64) samples came before them, ``(count,)`` bool.

    Example:
        >>> is_held_out(torch.tensor(3), 3).tolist()
        [False, True, False]
    """
    return (before + torch.arange(count, device=before.device)) % EVERY == EVERY - 1


def held_out_errors(
    moment: Tensor, sums: Tensor, held: Tensor, held_sums: Tensor, penalties: Tensor, samples: int
) -> Tensor:
    r"""Squared errors on held-out samples of ridge regressions on the other samples, all computed from sums.

    .. math::
        \lVert Y_h - X_h W_\lambda \rVert^2 - \lVert Y_h \rVert^2
        = \operatorname{tr} W_\lambda^\top X_h^\top X_h W_\lambda - 2 \operatorname{tr} W_\lambda^\top X_h^\top Y_h,
        \quad W_\lambda = (X^\top X + \lambda I)^{-1} X^\top Y

    Args:
        moment, sums: :math:`X^\top X`, ``(P, P)``, and :math:`Y^\top X`, ``(C, P)``, of the other samples, float64.
        held, held_sums: :math:`X_h^\top X_h` and :math:`Y_h^\top X_h` of the held-out samples.
        penalties: :math:`\lambda`, ``(K,)``.
        samples: an upper bound on the number of samples and so on the moment's rank.

    Returns:
        The errors, ``(K,)``, less the number of held-out samples, which is the same in all of them.

    Example:
        >>> one = torch.ones(1, 1).double()
        >>> held_out_errors(one, one, one, one, torch.tensor([1.0, 3.0]).double(), 1).tolist()  # W = 1/2 and 1/4
        [-0.75, -0.4375]
    """
    values, vectors = eigenpairs(moment, samples)
    rotated = sums @ vectors
    squares = (rotated.T @ rotated) * (vectors.T @ held @ vectors)
    products = (rotated * (held_sums @ vectors)).sum(0)
    inverse = 1 / (values + penalties.unsqueeze(1))
    return ((inverse @ squares) * inverse).sum(1) - 2 * inverse @ products
