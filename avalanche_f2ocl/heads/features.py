"""What a head sees of an image."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.backbone.vit import PromptableViT

LAST_BLOCKS = 4
"""Blocks whose outputs are ``"layers"``."""


def head_features(
    kind: str, z: Tensor, q: Any, z_layers: Tensor | None = None, q_layers: Tensor | None = None
) -> Tensor:
    """The vectors a head learns from and scores.

    Args:
        kind: ``"z"``, the embedding under prompts; ``"q"``, the one without; ``"zq"``, both; ``"layers"``, what the
            last blocks put out under prompts; ``"ensemble"``, the same with and without prompts. Where there are
            several parts, each is normalised to length 1.
        z, q: ``(B, D)``; q where it is needed.
        z_layers, q_layers: ``(B, blocks, K, D)`` from :meth:`PromptableViT.encode_layers`, where they are needed.

    Returns:
        ``(B, F)``.

    Example:
        >>> head_features("zq", torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.0]])).tolist()
        [[0.6000000238418579, 0.800000011920929, 0.0, 1.0]]
    """
    if kind in ("layers", "ensemble"):
        layers: list[Any] = [z_layers] if kind == "layers" else [z_layers, q_layers]
        return torch.cat([F.normalize(part, dim=-1).flatten(1) for part in layers], dim=1)
    if kind == "zq":
        return torch.cat([F.normalize(z, dim=1), F.normalize(q, dim=1)], dim=1)
    return z if kind == "z" else q


def feature_count(kind: str, backbone: PromptableViT) -> int:
    """F of :func:`head_features`."""
    vit = backbone.vit
    layers = min(LAST_BLOCKS, len(vit.blocks)) * (2 if backbone.has_class_token else 1)
    return {"zq": 2, "layers": layers, "ensemble": 2 * layers}.get(kind, 1) * backbone.embed_dim
