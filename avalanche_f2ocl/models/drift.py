"""The option ``compensate_drift``: sums that stay comparable while prompts move."""

import torch
from torch import Tensor

from avalanche_f2ocl.models.f2ocl_batch import F2OCLBatch
from avalanche_f2ocl.state.prompts import Prompts


class NoCompensation:
    """No compensation: embeddings are used as they are.

    Attributes:
        watches: whether :meth:`before_step` needs the head's features before the prompt's step.
    """

    watches = False

    def before_step(self, batch: F2OCLBatch, z: Tensor, features: Tensor) -> None:
        """Looks at embeddings ``z (B, D)`` and head features ``(B, F)`` before the mini-batch's first step."""

    def moved(self, batch: F2OCLBatch, means: Tensor) -> Tensor:
        """Class means ``(N, D)``, moved to where they are under the mini-batch's present prompt."""
        return means

    def after_steps(self, batch: F2OCLBatch, z: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """``z (B, D)`` and ``features (B, F)`` after the mini-batch's last step, as they are added to sums."""
        return z, features

    def compensated(self, features: Tensor, rows: Tensor) -> Tensor:
        """Head features ``(B, F)`` of images under the prompts ``rows (B, K)``, made comparable with the sums."""
        return features


class DriftCompensation(NoCompensation):
    """Subtracts from embeddings how far the steps of their prompt have moved the means of mini-batches.

    Args:
        pool: the prompts, which also keep the drift.
        dim: length D of an embedding. A drift has D numbers for the embedding, followed by F for the head features.
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
    """The mean over a mini-batch, ``(D + F,)``."""
    return torch.cat([z, features], dim=1).mean(0)
