"""Sums that stay comparable while prompts move: ``compensate_drift``."""

import torch
from torch import Tensor

from avalanche_f2ocl.models.f2ocl_batch import F2OCLBatch
from avalanche_f2ocl.state.prompts import Prompts


class NoCompensation:
    """Embeddings are taken as they are.

    Attributes:
        watches: whether :meth:`before_step` wants to know what a head sees before the prompt's step.
    """

    watches = False

    def before_step(self, batch: F2OCLBatch, z: Tensor, features: Tensor) -> None:
        """Looks at embeddings ``z (B, D)`` and head features ``(B, F)`` before the mini-batch's first step."""

    def moved(self, batch: F2OCLBatch, means: Tensor) -> Tensor:
        """Where class means ``(N, D)`` are under the mini-batch's prompt as it is now."""
        return means

    def after_steps(self, batch: F2OCLBatch, z: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """``z (B, D)`` and ``features (B, F)`` after the mini-batch's last step as they go into sums."""
        return z, features

    def compensated(self, features: Tensor, rows: Tensor) -> Tensor:
        """Head features ``(B, F)`` of images under the prompts ``rows (B, K)``, comparable with the sums."""
        return features


class DriftCompensation(NoCompensation):
    """Embeddings are taken relative to what the steps of their prompt have moved a mini-batch's mean by.

    Args:
        pool: keeps the drift.
        dim: length D of an embedding, with which a drift begins; the F head features follow.
    """

    watches = True

    def __init__(self, pool: Prompts, dim: int) -> None:
        self.pool, self.dim = pool, dim

    def before_step(self, batch: F2OCLBatch, z: Tensor, features: Tensor) -> None:
        if batch.before is None:
            batch.before = _mean(z, features)

    def moved(self, batch: F2OCLBatch, means: Tensor) -> Tensor:
        return means + self.pool.drift[batch.prompt_rows][:, : self.dim]

    def after_steps(self, batch: F2OCLBatch, z: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        rows = batch.prompt_rows
        assert rows is not None  # it has been encoded
        if batch.before is not None:
            self.pool.add("drift", rows, _mean(z, features) - batch.before)
            batch.before = None
        drift = self.pool.drift[rows]
        return z - drift[:, : self.dim], features - drift[:, self.dim :]

    def compensated(self, features: Tensor, rows: Tensor) -> Tensor:
        return features - self.pool.drift[rows].mean(1)[:, self.dim :]


def _mean(z: Tensor, features: Tensor) -> Tensor:
    """Over a mini-batch, ``(D + F,)``."""
    return torch.cat([z, features], dim=1).mean(0)
