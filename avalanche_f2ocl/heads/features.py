"""The features of an image that heads see."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.heads.layers import Layers, choose_layers
from avalanche_f2ocl.options import HeadOptions

OF_CLASS_TOKENS = ("class_tokens", "fused")
"""Kinds of features made only of class tokens, as LayUP and F-OAL use them."""


@dataclass(frozen=True)
class FeaturePlan:
    """Which features come from which forward pass, and how many of them each head gets.

    Attributes:
        kind: kind of the features, see :func:`head_features`.
        prompted, unprompted: layers of the pass with prompts and of the pass without; None if it gives no layers.
        widths: number of features of each head, in order; they add up to F.
    """

    kind: str
    prompted: Layers | None
    unprompted: Layers | None
    widths: tuple[int, ...]


def feature_plan(options: HeadOptions, backbone: PromptableViT) -> FeaturePlan:
    """The plan of a head's options on a backbone.

    Raises:
        ValueError: the features are class tokens, but the backbone has none.

    Example:
        >>> from avalanche_f2ocl.backbone.load import load_backbone
        >>> feature_plan(HeadOptions(head_features="zq"), load_backbone("micro_vit")).widths
        (256,)
    """
    kind, dim = options.head_features, backbone.embed_dim
    if kind in OF_CLASS_TOKENS:
        if not backbone.has_class_token:
            raise ValueError(f"head_features={kind!r}: this backbone has no class token; allowed are 'q' and 'layers'")
        depth = len(backbone.vit.blocks)
        blocks = tuple(range(depth - min(depth, options.blocks or depth), depth))
        width = dim if kind == "fused" else len(blocks) * dim
        return FeaturePlan(kind, Layers(blocks, 1, (width,)), None, (width,))
    if kind not in ("layers", "ensemble"):
        widths = {"zq": (2 * dim,), "either": (dim, dim)}.get(kind, (dim,))
        return FeaturePlan(kind, None, None, widths)
    prompted = choose_layers(backbone, options.blocks, options.blocks_per_head, options.grid)
    if kind == "layers":
        return FeaturePlan(kind, prompted, None, prompted.widths)
    unprompted = choose_layers(backbone, options.blocks, options.blocks_per_head)
    return FeaturePlan(kind, prompted, unprompted, prompted.widths + unprompted.widths)


def head_features(
    kind: str, z: Tensor, q: Any, z_layers: Tensor | None = None, q_layers: Tensor | None = None
) -> Tensor:
    """The vectors that heads learn from and score.

    Args:
        kind: ``"z"``, the embedding under prompts; ``"q"``, the embedding without; ``"zq"``, both, each normalised to
            length 1, since they share a head; ``"either"``, both unchanged; ``"layers"``, outputs of the blocks under
            prompts; ``"ensemble"``, outputs of the blocks with and without prompts.
        z, q: embeddings with and without prompts, ``(B, D)``; q only if it is needed.
        z_layers, q_layers: ``(B, blocks, K, D)`` from :meth:`PromptableViT.encode_layers`, if they are needed.

    Returns:
        ``(B, F)``.

    Example:
        >>> head_features("zq", torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.0]])).tolist()
        [[0.6000000238418579, 0.800000011920929, 0.0, 1.0]]
    """
    if kind in ("layers", "ensemble"):
        layers: list[Any] = [z_layers] if kind == "layers" else [z_layers, q_layers]
        return torch.cat([F.normalize(part, dim=-1).flatten(1) for part in layers], dim=1)
    if kind == "either":
        return torch.cat([z, q], dim=1)
    if kind == "zq":
        return torch.cat([F.normalize(z, dim=1), F.normalize(q, dim=1)], dim=1)
    return z if kind == "z" else q


def class_token_features(kind: str, layers: Tensor, norm: Callable[[Tensor], Tensor]) -> Tensor:
    """Features made of the class tokens after several blocks, as LayUP and F-OAL make them.

    Args:
        kind: ``"class_tokens"``, the tokens concatenated (LayUP, Ahrens et al., 2023); ``"fused"``, their mean under
            the backbone's last norm (F-OAL, Zhuang et al., 2024).
        layers: ``(B, blocks, K, D)`` from :meth:`PromptableViT.encode_layers`, the class token first.
        norm: the backbone's last norm.

    Returns:
        ``(B, blocks * D)`` or ``(B, D)``.

    Example:
        >>> class_token_features("fused", torch.tensor([[[[1.0], [9.0]], [[3.0], [9.0]]]]), lambda x: x).tolist()
        [[2.0]]
    """
    tokens = layers[:, :, 0]
    return tokens.flatten(1) if kind == "class_tokens" else norm(tokens.mean(1))
