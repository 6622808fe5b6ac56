"""Decisions that options leave open: precision, readout, width of a random projection, number of threads."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from avalanche_f2ocl.heads import EnsembleHead, RidgeHead

if TYPE_CHECKING:
    from torch import nn


def resolved(backbone: Any, head: "nn.Module | Any") -> dict[str, Any]:
    """The decisions made for a model, as JSON values.

    Args:
        backbone: a :class:`avalanche_f2ocl.backbone.PromptableViT`.
        head: the model's head.

    Returns:
        ``dtype`` of the backbone and its ``readout``; ``projection``, the number of features of a ridge head's random
        projection, or None without one; the number of CPU ``threads``, on which the last bits of sums depend.
    """
    single = head.heads[0] if isinstance(head, EnsembleHead) else head
    projection = single.projection if isinstance(single, RidgeHead) else None
    width = None if projection is None else projection.matrix.shape[1]
    dtype = str(backbone.dtype).removeprefix("torch.")
    threads = torch.get_num_threads()
    return {"dtype": dtype, "projection": width, "readout": backbone.readout, "threads": threads}


def decided_otherwise(
    values: Mapping[str, Any], tensors: Mapping[str, Tensor], here: Mapping[str, Any]
) -> dict[str, Any]:
    """Options that make this machine decide as the one that wrote a file.

    Args:
        values, tensors: contents of the file; version 0.1 wrote no decisions, but the tensors show the width.
        here: :func:`resolved` of a model made with the file's options.

    Returns:
        ``precision`` and ``projection``, if they were left open and this machine decides differently.
    """
    options, there = values["options"], dict(values.get("resolved", {}))
    for name in ("model.head.moment", "model.head.heads.0.moment"):
        if name in tensors:
            there.setdefault("projection", len(tensors[name]))
    other = {}
    if options.get("precision") == "auto" and there.get("dtype", here["dtype"]) != here["dtype"]:
        other["precision"] = there["dtype"]
    if options.get("projection", 0) is None and here["projection"] not in (None, there.get("projection")):
        other["projection"] = there["projection"]
    return other
