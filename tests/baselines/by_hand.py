"""Published equations written out, for the tests of what trains prompts."""

import torch
from torch.nn import functional as F


def under_prefixes(vit, tokens, prefixes):
    """Class tokens ``(B, D)`` of a plain ViT whose block i also attends to keys and values ``prefixes[i]``.

    Args:
        vit: of timm's, without layer scale and normalised queries.
        tokens: ``(B, T, D)``.
        prefixes: for the first blocks, each ``(2, L, D)``, or ``(B, 2, L, D)``.
    """
    x = tokens
    for index, block in enumerate(vit.blocks):
        h, attention = block.norm1(x), block.attn
        q, k, v = F.linear(h, attention.qkv.weight, attention.qkv.bias).chunk(3, dim=2)
        if index < len(prefixes):
            keys, values = prefixes[index].expand(len(x), -1, -1, -1).unbind(1)
            k, v = torch.cat([keys, k], 1), torch.cat([values, v], 1)
        heads = [
            torch.softmax(a @ b.transpose(1, 2) / a.shape[2] ** 0.5, 2) @ c
            for a, b, c in zip(*(t.chunk(attention.num_heads, dim=2) for t in (q, k, v)), strict=True)
        ]
        x = x + attention.proj(torch.cat(heads, 2))
        x = x + block.mlp(block.norm2(x))
    return vit.norm(x)[:, 0]


class PerClassAdam:
    """Adam for one tensor after another, each with its own count of steps; those without a gradient rest."""

    def __init__(self, lr):
        self.lr, self.optimizers = lr, {}

    def step(self, tensors):
        """One step on each of ``tensors``, by name, that has a gradient, and clears them."""
        for name, tensor in tensors.items():
            if tensor.grad is not None:
                own = self.optimizers.setdefault(name, torch.optim.Adam([tensor], lr=self.lr))
                own.step()
                tensor.grad = None
