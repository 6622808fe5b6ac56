"""Images of several data sets, encoded once, for studies of everything after the frozen backbone."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl import datasets
from avalanche_f2ocl.backbone.load import load_backbone
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.config import PRESETS, F2OCLConfig
from avalanche_f2ocl.datasets.domains import DomainFiles
from avalanche_f2ocl.state.prompts import OnePrompt
from benchmarks.runs.streams import whole

COUNTS: dict[str, tuple[int | None, int | None]] = {
    "digits": (100, None), "cifar100": (50, 30), "caltech101": (None, None), "pacs": (None, None),
    "traffic_signs": (50, 30),
}  # fmt: skip
"""Training and test images of each class."""
FILES = {"traffic_signs": "traffic_signs.zip", "cifar100": "cifar100.zip", "caltech101": "caltech101.zip"}


class Images(NamedTuple):
    """Images ``(N, C, H, W)`` uint8 and labels ``(N,)`` int64 from 0."""

    pixels: Tensor
    labels: Tensor


class Encoded(NamedTuple):
    """Results of the forward passes over N images.

    Attributes:
        labels: ``(N,)`` int64.
        q: embeddings without a prompt, ``(N, D)``.
        z: embeddings of the enlarged middle under an untrained prompt, ``(N, D)``.
        layers: layers of both passes, normalised, ``(N, F)`` float16; those under the prompt come first, as in
            ``best()``.
        widths: number of features of each pass.
    """

    labels: Tensor
    q: Tensor
    z: Tensor
    layers: Tensor
    widths: tuple[int, int]

    def of(self, rows: Tensor) -> "Encoded":
        """Some of the images, selected by index or mask."""
        return Encoded(self.labels[rows], self.q[rows], self.z[rows], self.layers[rows], self.widths)

    def without_prompt(self) -> Tensor:
        """Layers of the pass without a prompt, ``(N, F)``."""
        return self.layers[:, self.widths[0] :].float()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where data and weights are, and where results go."""
    parser.add_argument("--data-dir", type=Path, required=True, help="where cifar100.zip, caltech101.zip, ... are")
    parser.add_argument("--weights", required=True, help="local checkpoint of the ViT-Ti")
    parser.add_argument("--image-size", type=int, default=112, help="of photographs, in pixels; default %(default)s")
    parser.add_argument("--precision", default="bfloat16", help="of the frozen ViT; default %(default)s")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])


def backbone_of(name: str, args: argparse.Namespace) -> PromptableViT:
    """The bundled ViT for digits, a ViT-Ti for photographs."""
    if name == "digits":
        return load_backbone("micro_vit", precision="float32")
    return load_backbone("vit_tiny_patch16_224", args.weights, args.image_size, precision=args.precision)


def images_of(name: str, data_dir: Path) -> tuple[Images, Images]:
    """Training and test images; all digits that are not learned are test images."""
    train_count, test_count = COUNTS[name]
    if name == "pacs":
        train, test = whole(DomainFiles(data_dir / "pacs.zip"))
    elif name == "digits":
        data = datasets.load(name)
        labels = torch.tensor(data.train.targets)
        learned = torch.zeros(len(labels), dtype=torch.bool)
        learned[datasets.keep_per_class(labels, train_count, "digits")] = True
        everything, test = stacked(data.train), stacked(data.test)
        rest = Images(*(torch.cat(pair) for pair in zip((part[~learned] for part in everything), test, strict=True)))
        return Images(*(part[learned] for part in everything)), rest
    else:
        data = datasets.load(data_dir / FILES[name], train_count, test_count, in_memory=True)
        train, test = data.train, data.test
    return stacked(train), stacked(test)


def stacked(data: datasets.loading.ImageTensors) -> Images:
    """All images of a part at once."""
    items = [data[i] for i in range(len(data))]
    return Images(torch.stack([item[0] for item in items]), torch.tensor([int(item[1]) for item in items]))


@torch.no_grad()
def encode(backbone: PromptableViT, images: Images, seed: int = 0) -> Encoded:
    """Both passes that ``best()`` makes before its prompt has been trained."""
    best = PRESETS["best"]
    prompt = OnePrompt(F2OCLConfig.prompt_length, backbone.embed_dim, seed=seed).prompts.detach()
    parts: list[tuple[Tensor, ...]] = []
    for pixels in images.pixels.split(100):
        q, whole_layers = backbone.encode_layers(backbone.tokens(pixels))
        z, closer = backbone.encode_layers(backbone.tokens(pixels, best["zoom"]), prompt, grid=best["grid"])
        layers = [F.normalize(part.float(), dim=-1).flatten(1).half() for part in (closer, whole_layers)]
        parts.append((q.float(), z.float(), *layers))
    q, z, closer, whole_layers = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    widths = closer.shape[1], whole_layers.shape[1]
    return Encoded(images.labels, q, z, torch.cat([closer, whole_layers], dim=1), widths)


_ENCODED: dict[str, tuple[PromptableViT, Encoded, Encoded]] = {}


def encoded(name: str, args: argparse.Namespace) -> tuple[PromptableViT, Encoded, Encoded]:
    """A data set's backbone, training and test images, encoded at first use; only the last data set is kept."""
    if name not in _ENCODED:
        _ENCODED.clear()
        backbone = backbone_of(name, args)
        train, test = (encode(backbone, images) for images in images_of(name, args.data_dir))
        _ENCODED[name] = backbone, train, test
    return _ENCODED[name]


def order_of(labels: Tensor, groups: int, seed: int) -> Tensor:
    """Indices of a stream of ``groups`` groups of classes, each shuffled inside; with one group, all are shuffled."""
    draw = torch.Generator().manual_seed(seed)
    classes = labels.unique()
    parts = []
    for group in classes[torch.randperm(len(classes), generator=draw)].chunk(groups):
        own = torch.isin(labels, group).nonzero().squeeze(1)
        parts.append(own[torch.randperm(len(own), generator=draw)])
    return torch.cat(parts)


def hold_out(labels: Tensor, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Indices of the images that are kept, and of those held out: a share of each class, at least one image."""
    draw = torch.Generator().manual_seed(seed)
    held = torch.zeros(len(labels), dtype=torch.bool)
    for label in labels.unique():
        own = (labels == label).nonzero().squeeze(1)
        held[own[torch.randperm(len(own), generator=draw)[: max(1, round(share * len(own)))]]] = True
    return (~held).nonzero().squeeze(1), held.nonzero().squeeze(1)


def write_once(path: Path, trial: Callable[[], dict[str, Any]]) -> None:
    """Writes and prints what a trial finds, unless an earlier run has written its file."""
    if path.exists():
        return
    found = trial()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(path.stem, found, flush=True)
