"""A frozen ViT with its weights, ready for prompts."""

from pathlib import Path
from typing import Any

from torch import nn

from avalanche_f2ocl.backbone.sharded import ShardedViT
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.backbone.weights import load_vit
from avalanche_f2ocl.ranks import world_size


def load_backbone(
    backbone: str | nn.Module = "vit_base_patch16_224.augreg_in21k",
    weights: str | Path | None = None,
    image_size: int | None = None,
    **options: Any,
) -> PromptableViT:
    """Loads a ViT (see :func:`load_vit`) and wraps it with ``options``; with several processes in their shares."""
    kind = ShardedViT if world_size() > 1 else PromptableViT
    return kind(load_vit(backbone, weights, image_size), **options)
