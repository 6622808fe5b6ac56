"""Prefix tuning of a timm ViT: keys and values put before those of chosen attention layers."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from timm.models import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional as F

from avalanche_f2ocl.backbone.families import AnyViT

FIRST_BLOCKS = (0, 1, 2, 3, 4)
"""Blocks with a prefix in CODA-Prompt and SinglePrompt, counted from 0."""


@contextmanager
def prefix_tuning(blocks: Sequence[Any] | nn.Sequential, prefixes: Mapping[int, Tensor]) -> Iterator[None]:
    """A context in which some blocks also attend to given keys and values.

    timm's attention runs unchanged on P additional tokens: their keys and values are the prefix's, and their outputs
    are dropped. So this works with any attention that projects to queries, keys and values by one ``qkv`` layer.

    Args:
        blocks: blocks of the ViT.
        prefixes: prefixes by index of the block, ``(B, 2, P, D)`` or ``(1, 2, P, D)`` for all samples: keys, then
            values, before the split into heads; gradients flow to them.

    Source: Li and Liang, Prefix-Tuning, 2021; for ViTs, Wang et al., DualPrompt, 2022.

    Example:
        >>> from timm.layers import Attention
        >>> block = nn.Module()
        >>> block.attn = Attention(8, num_heads=2)
        >>> with prefix_tuning([block], {0: torch.zeros(1, 2, 3, 8)}):
        ...     block.attn(torch.zeros(4, 5, 8)).shape
        torch.Size([4, 5, 8])
    """
    with ExitStack() as stack:
        for index, prefix in prefixes.items():
            for handle in _attach(blocks[index].attn, prefix):
                stack.callback(handle.remove)
        yield


def check_blocks(vit: AnyViT, method: str, last: int) -> None:
    """Raises unless a ViT's blocks, up to the one with index ``last``, can take prefixes and prompts of their own.

    Raises:
        TypeError: the family's attention has no ``qkv`` layer to add to.
        ValueError: the ViT has fewer blocks.
    """
    if not isinstance(vit, VisionTransformer):
        raise TypeError(
            f"backbone is of timm's class {type(vit).__name__}: {method} puts prompts into blocks, which needs a "
            "VisionTransformer"
        )
    if len(vit.blocks) <= last:
        raise ValueError(f"backbone has {len(vit.blocks)} blocks: {method} needs at least {last + 1}")


def _attach(attention: Any, prefix: Tensor):
    length = prefix.shape[2]

    def lengthen(module, args):
        return (F.pad(args[0], (0, 0, 0, length)), *args[1:])

    def write(module, args, qkv):
        keys, values = prefix.expand(len(qkv), -1, -1, -1).unbind(1)
        added = torch.cat([torch.zeros_like(keys), keys, values], dim=2)
        return torch.cat([qkv[:, :-length], added.to(qkv.dtype)], dim=1)

    def shorten(module, args, output):
        return output[:, :-length]

    yield attention.register_forward_pre_hook(lengthen)
    yield attention.qkv.register_forward_hook(write)
    yield attention.register_forward_hook(shorten)
