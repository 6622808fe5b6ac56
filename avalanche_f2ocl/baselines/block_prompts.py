"""Prompt tuning of a timm ViT: tokens that are added before single blocks and dropped after them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def prompt_tuning(blocks: Sequence[Any] | nn.Sequential, prompts: Mapping[int, Tensor]) -> Iterator[None]:
    """A context in which some blocks also see given tokens, whose outputs are dropped after the block.

    Args:
        blocks: blocks of the ViT.
        prompts: prompts by index of the block, ``(B, L, D)``, or ``(1, L, D)`` for all samples; gradients flow to them.

    Source: Jia et al., Visual Prompt Tuning, 2022, where it is called VPT-Deep.

    Example:
        >>> block = nn.Linear(8, 8)
        >>> with prompt_tuning([block], {0: torch.zeros(1, 3, 8)}):
        ...     block(torch.zeros(4, 5, 8)).shape
        torch.Size([4, 5, 8])
    """
    with ExitStack() as stack:
        for index, prompt in prompts.items():
            for handle in _attach(blocks[index], prompt):
                stack.callback(handle.remove)
        yield


def _attach(block: Any, prompt: Tensor):
    def lengthen(module, args):
        x = args[0]
        return (torch.cat([x, prompt.to(x.dtype).expand(len(x), -1, -1)], dim=1), *args[1:])

    def shorten(module, args, output):
        return output[:, : -prompt.shape[1]]

    yield block.register_forward_pre_hook(lengthen)
    yield block.register_forward_hook(shorten)
