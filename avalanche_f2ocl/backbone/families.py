"""Differences between timm's families of ViTs: how they pool, and how their blocks learn about positions."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import torch
from timm.models import VisionTransformer
from timm.models.deit import VisionTransformerDistilled
from timm.models.eva import Eva
from torch import Tensor, nn
from torch.nn import functional as F

AnyViT: TypeAlias = Any
"""A module of one of :data:`FAMILIES`, whose attributes timm declares differently."""

FAMILIES = (VisionTransformer, Eva)
"""Classes that can be prompted; Eva covers EVA-02, DINOv3, Perception Encoder and timm's ViTs with rotary positions."""


def has_class_token(vit: AnyViT) -> bool:
    """Whether the first token of ``vit`` is a class token.

    Example:
        >>> has_class_token(VisionTransformer(img_size=32, embed_dim=8, num_heads=2, depth=1))
        True
    """
    return vit.cls_token is not None


def stock_readout(vit: AnyViT) -> str:
    """How a model of timm's pools its outputs.

    Args:
        vit: a model of one of :data:`FAMILIES`.

    Returns:
        ``"cls"``, the class token; ``"patch"``, the mean over the patches; ``"distilled"``, the mean of class and
        distillation token; ``"pool"``, any other way, such as an attention pool.

    Example:
        >>> stock_readout(VisionTransformer(img_size=32, embed_dim=8, num_heads=2, depth=1, global_pool="avg"))
        'patch'
    """
    if isinstance(vit, VisionTransformerDistilled):
        return "distilled"
    plain = vit.attn_pool is None and not getattr(vit, "pool_include_prefix", False)
    return {"token": "cls", "avg": "patch"}.get(vit.global_pool, "pool") if plain else "pool"


def block_calls(vit: AnyViT, prompts: int = 0) -> list[Callable[[Tensor], Tensor]]:
    """The blocks in order, as functions of tokens ``(B, T, D)`` with ``prompts`` between prefix tokens and patches."""
    angles = rotations(vit, prompts)
    return [block if a is None else partial(block, rope=a) for block, a in zip(vit.blocks, angles, strict=True)]


def rotations(vit: AnyViT, prompts: int) -> list[Tensor | None]:
    """The rotary position embedding for each block, which leaves prompts unchanged; None for a block without one.

    A block is given sines and cosines of angles and rotates by them the queries and keys of all tokens behind the
    prefix tokens. The first of these are the prompts, with a sine of 0 and a cosine of 1.
    """
    if getattr(vit, "rope", None) is None:
        return [None] * len(vit.blocks)
    fixed = getattr(vit.rope, "feat_shape", None) is not None and not vit.dynamic_img_size
    grid = {} if fixed else {"shape": vit.patch_embed.grid_size}
    angles = vit.rope.get_embed(**grid)  # (N, 2 E), or (blocks, heads, N, 2 E)
    sines, cosines = angles.chunk(2, dim=-1)
    ahead = (0, 0, prompts, 0)
    padded = torch.cat([F.pad(sines, ahead), F.pad(cosines, ahead, value=1.0)], dim=-1)
    return list(padded) if getattr(vit, "rope_mixed", False) else [padded] * len(vit.blocks)


def check_vit(vit: nn.Module, name: str, image_size: int | None = None) -> AnyViT:
    """Returns the ViT after checking it.

    Raises:
        TypeError: the module is of none of :data:`FAMILIES`.
        ValueError: its images are not square or do not have three channels, or it does not take ``image_size``.
    """
    if not isinstance(vit, FAMILIES):
        raise TypeError(
            f"backbone={name!r}: must be of timm's classes VisionTransformer or Eva, is {type(vit).__name__}; "
            "docs/backbones.md lists the names"
        )
    size = vit.patch_embed.img_size
    channels = next((part.in_channels for part in vit.patch_embed.modules() if isinstance(part, nn.Conv2d)), 3)
    if size is None or size[0] != size[1]:
        raise ValueError(f"backbone={name!r}: takes images of {size}; allowed are square ones, as image_size=224")
    if channels != 3:
        raise ValueError(f"backbone={name!r}: takes {channels} channels; allowed are 3, grey images are tripled")
    patch = size[0] // vit.patch_embed.grid_size[0]
    if image_size is not None and image_size % patch:
        raise ValueError(f"image_size={image_size}: must be a multiple of the backbone's patch size, {patch}")
    return vit
