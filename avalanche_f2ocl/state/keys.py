"""Keys: one vector per class, which embeddings without prompts are matched with."""

from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.losses import key_loss
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.class_means import ClassMeans, mask_unseen
from avalanche_f2ocl.state.prompts import initial_prompt
from avalanche_f2ocl.state.rows import ClassRows


class Keys(Protocol):
    """The methods that a model needs of its keys."""

    def add_classes(self, ids: Tensor) -> None:
        """Adds a key for each of the class ids ``(N,)``, int64 on the CPU."""

    def vectors(self) -> Tensor:
        """All keys, ``(C, D)`` float32."""

    def update(self, q: Tensor, rows: Tensor, class_rows: Tensor, local: Tensor, previous_counts: Tensor) -> Any:
        """Moves the keys of a mini-batch's classes, once per mini-batch; see :meth:`GradientKeys.update`."""

    def remove(self, q: Tensor, rows: Tensor) -> None:
        """Takes out ``q (B, D)`` of the classes ``rows (B,)``, if keys are means."""


class MeanKeys(ClassMeans):
    """A key is the running mean of its class's unprompted embeddings.

    Example:
        >>> keys = MeanKeys(dim=2)
        >>> keys.add_classes(torch.tensor([5]))
        >>> keys.vectors().shape
        torch.Size([1, 2])
    """

    def add_classes(self, ids: Tensor) -> None:
        """Adds a zero key for each of the class ids ``(N,)``."""
        self.add_rows(len(ids))

    def vectors(self) -> Tensor:
        """All keys, ``(C, D)`` float32."""
        return self.means()

    def update(self, q: Tensor, rows: Tensor, *_: Tensor) -> None:
        """Adds ``q (B, D)`` of the classes ``rows (B,)`` to the means."""
        super().update(q, rows)


class GradientKeys(ClassRows):
    """A key starts at random, uniform in [-1, 1), and takes one gradient step a mini-batch (Eq. 9).

    Args:
        dim: length D of a key.
        lr: step size.
        seed: seed of the initial keys; a class's initial key is a function of the seed and the class id.

    Example:
        >>> keys = GradientKeys(dim=2)
        >>> keys.add_classes(torch.tensor([5]))
        >>> bool(keys.vectors().abs().max() <= 1)
        True
    """

    keys: Tensor

    def __init__(self, dim: int, lr: float = 0.1, seed: int = 0) -> None:
        super().__init__()
        self.dim, self.lr, self.seed = dim, lr, seed
        self.register_rows("keys", dim)

    def add_classes(self, ids: Tensor) -> None:
        """Adds a random key for each of the class ids ``(N,)``, int64 on the CPU."""
        new = self.add_rows(len(ids))
        draws = [initial_prompt("uniform", (self.dim,), generator(self.seed, "key", c)) for c in ids.tolist()]
        self.keys[new] = torch.stack(draws).to(self.keys.device, non_blocking=True)

    def vectors(self) -> Tensor:
        """All keys, ``(C, D)`` float32."""
        return self.used("keys")

    def update(self, q: Tensor, rows: Tensor, class_rows: Tensor, local: Tensor, previous_counts: Tensor) -> None:
        """One step on the keys of ``class_rows (P,)``.

        Args:
            q: ``(B, D)``.
            rows: ``(B,)``, not used here.
            local: ``(B,)``, each sample's index into ``class_rows``.
            previous_counts: ``(P,)``, samples of those classes in earlier mini-batches.
        """
        old = self.keys[class_rows]
        with torch.enable_grad():
            new = old.clone().requires_grad_()
            (grad,) = torch.autograd.grad(key_loss(new, old, q, local, previous_counts), new)
        self.keys[class_rows] = old - self.lr * grad

    def remove(self, q: Tensor, rows: Tensor) -> None:
        """Does nothing: steps cannot be undone."""


def key_scores(q: Tensor, keys: Tensor, counts: Tensor) -> Tensor:
    """Cosine similarity of ``q (B, D)`` to ``keys (C, D)``: ``(B, C)``, masked where ``counts (C,)`` is 0.

    The paper's Eq. 10 takes the argmin of a similarity, but it must mean the nearest key.

    Example:
        >>> key_scores(torch.ones(1, 2), torch.eye(2), torch.tensor([1, 0])).round(decimals=2).tolist()
        [[0.7099999785423279, -1000000000.0]]
    """
    scores = F.normalize(q.float(), dim=1) @ F.normalize(keys, dim=1).T
    return mask_unseen(scores, counts)
