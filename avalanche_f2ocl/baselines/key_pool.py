"""A pool of prompts that belong to no class, chosen by learned keys."""

from torch import Tensor, nn
from torch.nn import functional as F

from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.prompts import initial_prompt


class KeyPool(nn.Module):
    """M prompts, each with a key that unprompted embeddings are matched with.

    Args:
        size: number M of prompts.
        shape: shape of one prompt.
        dim: length D of a key.
        init: initial values of the prompts, see :func:`avalanche_f2ocl.state.prompts.initial_prompt`; keys start
            uniform in [-1, 1).
        seed: seed of the random draws.

    Attributes:
        prompts: parameter ``(M, *shape)``.
        keys: parameter ``(M, D)``.

    Example:
        >>> import torch
        >>> pool = KeyPool(size=10, shape=(5, 8), dim=8)
        >>> rows, similarity = pool.nearest(torch.ones(4, 8), count=3)
        >>> rows.shape, similarity.shape
        (torch.Size([4, 3]), torch.Size([4, 3]))
    """

    def __init__(self, size: int, shape: tuple[int, ...], dim: int, init: str = "uniform", seed: int = 0) -> None:
        super().__init__()
        self.prompts = nn.Parameter(initial_prompt(init, (size, *shape), generator(seed, "pool-prompts")))
        self.keys = nn.Parameter(initial_prompt("uniform", (size, dim), generator(seed, "pool-keys")))

    def nearest(self, q: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The nearest keys of each sample, nearest first.

        Args:
            q: ``(B, D)``.
            count: number k of keys for each sample.

        Returns:
            Rows of the keys, ``(B, k)`` int64, and cosine similarities, ``(B, k)``, through which gradients reach the
            keys.
        """
        similarity = F.normalize(q, dim=1) @ F.normalize(self.keys, dim=1).T
        nearest = similarity.topk(count, dim=1)
        return nearest.indices, nearest.values
