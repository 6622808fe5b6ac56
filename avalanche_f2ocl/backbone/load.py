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
    """Loads a ViT and wraps it; where several processes share the work, each for its share.

    Args:
        backbone, weights, image_size: as :func:`avalanche_f2ocl.backbone.load_vit`; a :class:`PromptableViT` is given
            back as it is, and takes no weights or size.
        **options: as :class:`PromptableViT`.

    Raises:
        TypeError, ValueError, OSError: as there.

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
