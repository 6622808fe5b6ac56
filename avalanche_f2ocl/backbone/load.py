"""A frozen ViT with its weights, ready for prompts."""

from pathlib import Path
from typing import Any

from torch import nn

from avalanche_f2ocl.backbone.sharded import ShardedViT
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.options import DEFAULT_BACKBONE
from avalanche_f2ocl.ranks import world_size


def load_backbone(
    backbone: str | nn.Module = DEFAULT_BACKBONE,
    weights: str | Path | None = None,
    image_size: int | None = None,
    **options: Any,
) -> PromptableViT:
    """Loads a ViT and wraps it, so that several processes share its work if there are several.

    Args:
        backbone: a timm name, ``"micro_vit"`` or a ViT of timm's; a :class:`PromptableViT` is returned unchanged.
        weights: local checkpoint for a named backbone.
        image_size: side of the images in pixels; by default the backbone's own.
        **options: options of :class:`PromptableViT`.

    Raises:
        TypeError, ValueError: the backbone or an option is not allowed.
        OSError: the weights could not be loaded.

    Example:
        >>> load_backbone("micro_vit", readout="patch").readout
        'patch'
    """
    if isinstance(backbone, PromptableViT):
        if weights is not None or image_size is not None:
            raise ValueError(f"weights={weights!r}, image_size={image_size!r}: a PromptableViT has its own")
        return backbone
    kind = ShardedViT if world_size() > 1 else PromptableViT
    return kind.load(backbone, weights, image_size, **options)
