"""A frozen ViT whose forward passes are shared by several processes."""

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.ranks import Share, all_equal, gather_rows, own_share, sum_gradients


class ShardedViT(PromptableViT):
    """A :class:`PromptableViT` that encodes its process's share of each mini-batch and gathers the embeddings of all.

    Everything after it (loss, keys, prototypes, heads, metrics) sees the whole mini-batch in every process and so
    stays the same in all; the gradient of the prompts is summed over the processes. All processes must make the same
    calls in the same order.

    Args:
        vit, args, options: those of :class:`PromptableViT`.

    Raises:
        ValueError: the processes' weights differ.
    """

    def __init__(self, vit: Any, *args: Any, **options: Any) -> None:
        super().__init__(vit, *args, **options)
        if not all_equal(self.checksum):
            raise ValueError("the processes have backbones with different weights: load the same file, or use one seed")

    def tokens(self, images: Tensor, zoom: float = 1.0) -> Tensor:
        """Tokens of the process's share of ``images (B, C, H, W)``; their attribute ``share`` says which share."""
        share = own_share(len(images))
        tokens = super().tokens(share.of(images), zoom)
        tokens.share = share  # type: ignore[attr-defined]
        return tokens

    def _run(
        self,
        name: Hashable,
        function: Callable[..., tuple[Tensor, ...]],
        tokens: Tensor,
        prompts: Tensor | None,
        replay: bool,
    ) -> tuple[Tensor, ...]:
        share = tokens.share  # type: ignore[attr-defined]
        outputs = super()._run(name, function, tokens, _own(prompts, share), replay)
        return tuple(gather_rows(output, share) for output in outputs)


def _own(prompts: Tensor | None, share: Share) -> Tensor | None:
    """This process's part of the prompts, if each sample has its own; else all of them."""
    if prompts is None:
        return None
    if prompts.requires_grad and torch.is_grad_enabled():
        prompts = sum_gradients(prompts)
    return share.of(prompts) if len(prompts) == share.total else prompts
