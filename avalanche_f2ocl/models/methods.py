"""Models by the name of their method."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from avalanche_f2ocl.arguments import check_choice
from avalanche_f2ocl.backbone.devices import default_device
from avalanche_f2ocl.config import PRESETS
from avalanche_f2ocl.models.f2ocl import F2OCLModel
from avalanche_f2ocl.models.frozen import FrozenModel, ViTNCMModel
from avalanche_f2ocl.models.saving import SavedModel
from avalanche_f2ocl.options import DEFAULT_BACKBONE
from avalanche_f2ocl.rivals import RIVALS, WITHOUT_BOUNDARIES

METHODS: dict[str, tuple[type[SavedModel], dict[str, Any]]] = {
    "best": (F2OCLModel, PRESETS["best"]),
    "f2ocl": (F2OCLModel, {}),
    "vit-ridge": (FrozenModel, {"head": "ridge", "head_features": "layers", "projection": 0}),
    "vit-ncm": (ViTNCMModel, {}),
    **{name: (FrozenModel, dict(RIVALS[name].options)) for name in WITHOUT_BOUNDARIES},
}
"""The recommended settings and the paper's; and without prompts, ridge on layers, class means and others' methods."""


def make_model(
    method: str = "best",
    backbone: str | nn.Module = DEFAULT_BACKBONE,
    weights: str | Path | None = None,
    image_size: int | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
    device: str | torch.device | None = None,
) -> SavedModel:
    """Makes a new model.

    Args:
        method: one of :data:`METHODS`.
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's.
        weights: local checkpoint for a named backbone.
        image_size: side of the images in pixels; by default the backbone's own.
        options: options that override those of the method.
        device: by default CUDA if there is a CUDA device, else the CPU.

    Raises:
        TypeError, ValueError: the method is unknown, or an option is unknown or not allowed.
        OSError: the weights could not be loaded.

    Example:
        >>> make_model("vit-ncm", "micro_vit", options={"metric": "euclidean"}).config.metric
        'euclidean'
    """
    check_choice("method", method, tuple(METHODS))
    make, preset = METHODS[method]
    known = {field.name for field in fields(make.config_type)}
    if unknown := options.keys() - known:
        named, others = ", ".join(sorted(unknown)), ", ".join(sorted(known))
        raise ValueError(f"unknown option {named}; method {method!r} has {others}")
    place = default_device(device)
    return make(backbone, weights=weights, image_size=image_size, device=place, **{**preset, **options})
