"""The passes that a step and a prediction cannot do without, in plain PyTorch on a timm ViT, as a reference."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from timm.models import VisionTransformer
from torch import Tensor, nn


def blocks_input(vit: VisionTransformer, images: Tensor) -> Tensor:
    """Tokens ``(B, T, D)`` of normalised images ``(B, 3, S, S)``."""
    return vit._pos_embed(vit.patch_embed(images))


def embedding(vit: VisionTransformer, tokens: Tensor, prompt: Tensor | None = None) -> Tensor:
    """Class tokens ``(B, D)``; a prompt's tokens ``(1, L, D)`` are put behind the first token."""
    if prompt is not None:
        tokens = torch.cat([tokens[:, :1], prompt.to(tokens.dtype).expand(len(tokens), -1, -1), tokens[:, 1:]], dim=1)
    return vit.norm(vit.blocks(tokens))[:, 0]


def bare_step(
    vit: VisionTransformer,
    images: Tensor,
    prompt: nn.Parameter,
    autocast: bool = False,
    attention: Callable[[Tensor], AbstractContextManager] = nullcontext,
) -> None:
    """F2OCL's three forward passes and its backward pass to the prompt; no loss, keys, heads or optimiser.

    Args:
        vit: the frozen ViT.
        images: normalised images, ``(B, 3, S, S)``.
        prompt: ``(1, L, D)``.
        autocast: whether to run under autocast to bfloat16.
        attention: gives, for tokens, the context of the pass that has a gradient.
    """
    with torch.autocast(images.device.type, torch.bfloat16) if autocast else nullcontext():
        with torch.no_grad():
            tokens = blocks_input(vit, images)
            embedding(vit, tokens)
        with attention(tokens):
            z = embedding(vit, tokens, prompt)
        z.float().sum().backward()
        with torch.no_grad():
            embedding(vit, tokens, prompt)
    prompt.grad = None


@torch.no_grad()
def bare_prediction(vit: VisionTransformer, images: Tensor, prompts: Tensor) -> None:
    """F2OCL's two forward passes over images, each under a prompt of its own ``(B, L, D)``."""
    tokens = blocks_input(vit, images)
    embedding(vit, tokens)
    embedding(vit, tokens, prompts)
