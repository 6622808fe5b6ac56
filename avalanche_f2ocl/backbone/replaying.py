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
    """Runs passes through its ViT, or replays them if they were captured.

    Attributes:
        vit: the ViT; when its weights move, captured passes are dropped.
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
        # Without prompts a gradient may be needed, too, by hooks that put prefixes into the blocks.
        learns = torch.is_grad_enabled() and (prompts is None or prompts.requires_grad)
        with gradient_attention(tokens) if learns and not self._compiled else nullcontext():
            if replay and self._captured is not None and self._captured.device_type == tokens.device.type:
                return self._captured(name, function, *tensors)
            return function(*tensors)

    @contextmanager
    def forgetting_passes(self) -> Iterator[None]:
        """A context at whose end replayed passes drop what they keep of a mini-batch, including their gradients."""
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
