"""Passes through a frozen ViT that may be replayed as CUDA graphs."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext

import torch
from timm.models import VisionTransformer
from torch import Tensor, nn
from typing_extensions import Self

from avalanche_f2ocl.backbone.attention import gradient_attention
from avalanche_f2ocl.backbone.cuda_graphs import CapturedCalls


class ReplayingModule(nn.Module):
    """Runs passes through its ViT, or replays them where they were captured.

    Attributes:
        vit: what the passes go through; where its weights move, what was captured is dropped.
    """

    vit: VisionTransformer
    _captured: CapturedCalls | None
    _compiled: bool

    def _run(
        self,
        name: Hashable,
        function: Callable[..., tuple[Tensor, ...]],
        tokens: Tensor,
        prompts: Tensor | None,
        replay: bool,
    ) -> tuple[Tensor, ...]:
        tensors = (tokens,) if prompts is None else (tokens, prompts)
        # Without prompts a gradient can be wanted, too: by hooks that put prefixes into the blocks.
        learns = torch.is_grad_enabled() and (prompts is None or prompts.requires_grad)
        with gradient_attention(tokens) if learns and not self._compiled else nullcontext():
            if replay and self._captured is not None and self._captured.device_type == tokens.device.type:
                return self._captured(name, function, *tensors)
            return function(*tensors)

    @contextmanager
    def forgetting_passes(self) -> Iterator[None]:
        """At its end, what replayed passes keep of a mini-batch is forgotten, and their gradients are lost."""
        try:
            yield
        finally:
            if self._captured is not None:
                self._captured.wipe()

    def _apply(self, fn: Callable, recurse: bool = True) -> Self:
        places = [tensor.data_ptr() for tensor in self.vit.parameters()]
        super()._apply(fn, recurse)
        if self._captured is not None and places != [tensor.data_ptr() for tensor in self.vit.parameters()]:
            self._captured.clear()
        return self
