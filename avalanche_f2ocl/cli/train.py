"""``f2ocl train``: one pass over a folder or zip of images."""

import argparse
import time
from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

import torch
from tqdm import tqdm

from avalanche_f2ocl.backbone.devices import default_device
from avalanche_f2ocl.cli.images import labelled, minibatches
from avalanche_f2ocl.config import PRESETS
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.models.f2ocl import F2OCLModel
from avalanche_f2ocl.models.frozen import FrozenModel, ViTNCMModel
from avalanche_f2ocl.models.loading import load_model
from avalanche_f2ocl.models.saving import SavedModel
from avalanche_f2ocl.options import DEFAULT_BACKBONE
from avalanche_f2ocl.rng import generator

METHODS: dict[str, tuple[type[SavedModel], dict[str, Any]]] = {
    "best": (F2OCLModel, PRESETS["best"]),
    "f2ocl": (F2OCLModel, {}),
    "vit-ridge": (FrozenModel, {"head": "ridge", "head_features": "layers", "projection": 0}),
    "vit-ncm": (ViTNCMModel, {}),
}
"""The recommended settings, the paper's, and two without prompts: ridge regression on layers, class means."""


def make_model(
    method: str,
    backbone: str,
    weights: str | None = None,
    image_size: int | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
    device: str | None = None,
) -> SavedModel:
    """A new model of one of :data:`METHODS`.

    Raises:
        TypeError, ValueError, OSError: as the model's; an option that it does not have.
    """
    make, preset = METHODS[method]
    known = {field.name for field in fields(make.config_type)}
    if unknown := options.keys() - known:
        raise ValueError(f"--option {', '.join(sorted(unknown))}: {method} has {', '.join(sorted(known))}")
    place = default_device(device)
    return make(backbone, weights=weights, image_size=image_size, device=place, **{**preset, **options})


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Learns and saves; returns what it did."""
    source = ImageSource(args.images)
    files, classes = labelled(source, "train")
    if not args.out.parent.is_dir():
        raise FileNotFoundError(f"--out {str(args.out)!r}: there is no folder {str(args.out.parent)!r}")
    if args.go_on is not None:
        fixed = {name: getattr(args, name) for name in ("method", "backbone", "image_size", "option")}
        if given := [name for name, value in fixed.items() if value]:
            names = ", ".join("--" + name.replace("_", "-") for name in given)
            raise ValueError(f"{names}: with --from it is the file that decides")
        model = load_model(args.go_on, weights=args.weights, device=args.device)
    else:
        options = {"seed": args.seed, **dict(args.option)}
        method, backbone = args.method or next(iter(METHODS)), args.backbone or DEFAULT_BACKBONE
        model = make_model(method, backbone, args.weights, args.image_size, options, args.device)
    order = torch.randperm(len(files), generator=generator(args.seed, "order", model.batches)).tolist()
    if args.order == "classes":
        order.sort(key=lambda i: classes[i])
    images = [(source, files[i]) for i in order]
    unreadable: list[str] | None = [] if args.skip_unreadable else None
    started, learned = time.monotonic(), 0
    with tqdm(total=len(images), unit="image", disable=args.quiet) as bar:
        try:
            for indices, pixels in minibatches(images, model.backbone.image_size, args.batch_size, unreadable):
                model.learn(pixels, [classes[order[i]] for i in indices])
                learned += len(indices)
                bar.update(len(indices))
        except KeyboardInterrupt:
            if learned == 0:
                raise
            model.save(args.out, backbone=args.with_backbone)
            raise KeyboardInterrupt(f"stopped after {learned} images; what was learned is in {args.out}") from None
    model.save(args.out, backbone=args.with_backbone)
    return {
        "file": str(args.out),
        "images": learned,
        "unreadable": unreadable or [],
        "classes": len(model.class_ids),
        "seconds": round(time.monotonic() - started, 1),
    }


def text(result: dict[str, Any]) -> str:
    """For people."""
    unreadable = result["unreadable"]
    skipped = f", {len(unreadable)} could not be read ({', '.join(unreadable[:3])})" if unreadable else ""
    return (
        f"learned {result['images']} images{skipped} in {result['seconds']} s; {result['classes']} classes are known. "
        f"Saved: {result['file']}"
    )
