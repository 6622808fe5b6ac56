"""What heads should see of an image, and how their votes should be weighted: ridge heads on passes without training.

    python -m benchmarks.beyond.features --data-dir DIR --weights vit_tiny_patch16_224.safetensors

It uses held-out training images of the data sets of ``benchmarks.beyond.settings``; each seed splits the images anew
and draws another prompt. Each image is encoded once for each pass, so a table of all variants takes minutes. Accuracy
is in per cent.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.backbone.load import load_backbone
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.config import F2OCLConfig
from avalanche_f2ocl.heads import RidgeHead
from avalanche_f2ocl.heads.layers import choose_layers
from avalanche_f2ocl.options import Precision
from avalanche_f2ocl.state.prompts import OnePrompt
from benchmarks.beyond.settings import DATASETS, add_data_arguments, data_of
from benchmarks.runs.runner import parse_args
from benchmarks.runs.streams import make_stream
from benchmarks.runs.tables import to_readme, write_rows

TABLE = "features"
Loaded = tuple[PromptableViT, Tensor, Tensor, float]
"""Backbone, images ``(N, C, H, W)`` uint8, labels ``(N,)`` from 0, share that is held out."""


class Pass(NamedTuple):
    """A forward pass, and what heads see of it.

    Attributes:
        prompted: whether the pass is under an untrained prompt.
        zoom: enlargement of the image's middle.
        grid: patches are averaged over ``grid * grid`` cells.
        blocks, per_head: arguments of :func:`avalanche_f2ocl.heads.layers.choose_layers`.
    """

    prompted: bool = False
    zoom: float = 1.0
    grid: int = 1
    blocks: int | None = None
    per_head: int | None = None


WHOLE, RECOMMENDED = Pass(), Pass(True, 1.3, 2)
VARIANTS: dict[str, tuple[tuple[Pass, ...], float]] = {
    "last 4 blocks, one head": ((Pass(blocks=4, per_head=4),), 0),
    "all blocks, one head": ((Pass(per_head=99),), 0),
    "all blocks, three heads": ((WHOLE,), 0),
    "the same, votes by odds^4": ((WHOLE,), 4),
    "cells 2 x 2": ((Pass(grid=2),), 4),
    "cells 3 x 3": ((Pass(grid=3),), 4),
    "prompted": ((Pass(True),), 4),
    "prompted, enlarged 1.3": ((Pass(True, 1.3),), 4),
    "prompted, enlarged 1.3, cells 2 x 2": ((RECOMMENDED,), 4),
    "whole + prompted": ((WHOLE, Pass(True)), 4),
    "whole + prompted, cells 2 x 2": ((WHOLE, Pass(True, grid=2)), 4),
    "whole + prompted, enlarged 1.3": ((WHOLE, Pass(True, 1.3)), 4),
    "whole + prompted, enlarged 1.15, cells 2 x 2": ((WHOLE, Pass(True, 1.15, 2)), 4),
    "whole + prompted, enlarged 1.3, cells 2 x 2 (as recommended)": ((WHOLE, RECOMMENDED), 4),
    "whole + prompted, enlarged 1.5, cells 2 x 2": ((WHOLE, Pass(True, 1.5, 2)), 4),
    "as recommended, equal votes": ((WHOLE, RECOMMENDED), 0),
    "as recommended, votes by odds": ((WHOLE, RECOMMENDED), 1),
    "as recommended, votes by odds^2": ((WHOLE, RECOMMENDED), 2),
    "as recommended, votes by odds^6": ((WHOLE, RECOMMENDED), 6),
    "as recommended, votes by odds^8": ((WHOLE, RECOMMENDED), 8),
    "as recommended + prompted, enlarged 1.3": ((WHOLE, RECOMMENDED, Pass(True, 1.3)), 4),
    "as recommended, cells 3 x 3": ((WHOLE, Pass(True, 1.3, 3)), 4),
}
"""Passes, and the power of the odds by which votes are weighted."""


class Trial:
    """Heads on the passes of one split of one data set.

    Args:
        backbone: the frozen ViT.
        images: ``(N, C, H, W)`` uint8.
        labels: ``(N,)`` int64, from 0.
        held_out: share of each class's images that is held out and predicted.
        seed: seed of the split and of the prompt.
    """

    def __init__(self, backbone: PromptableViT, images: Tensor, labels: Tensor, held_out: float, seed: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        parts = [(labels == label).nonzero().squeeze(1) for label in labels.unique()]
        parts = [part[torch.randperm(len(part), generator=draw)] for part in parts]
        counts = [round(held_out * len(part)) for part in parts]
        self.test = torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])
        self.train = torch.cat([part[count:] for part, count in zip(parts, counts, strict=True)])
        self.backbone, self.images, self.labels = backbone, images, labels
        self.prompt: Tensor | None = OnePrompt(
            F2OCLConfig.prompt_length, backbone.embed_dim, seed=seed
        ).prompts.detach()
        self.in_blocks: Callable[[], AbstractContextManager[None]] = nullcontext
        self.unprompted = cache(self._layers)
        self.layers, self.heads = cache(self._layers), cache(self._heads)

    def use(self, prompt: Tensor | None, in_blocks: Callable[[], AbstractContextManager[None]]) -> None:
        """From now on uses another prompt ``(1, L, D)``, or whatever ``in_blocks()`` puts into the blocks."""
        self.prompt, self.in_blocks = prompt, in_blocks
        self.layers, self.heads = cache(self._layers), cache(self._heads)

    def accuracy(self, passes: Sequence[Pass], power: float, prompted: float = 1.0) -> float:
        """Accuracy in per cent of heads on all passes; ``prompted`` is the weight of votes under the prompt."""
        scores, evidence = map(torch.cat, zip(*map(self.heads, passes), strict=True))
        halves = [prompted if chosen.prompted else 1.0 for chosen in passes for _ in self.heads(chosen)[1]]
        odds = (evidence / (1 - evidence)) ** power * torch.tensor(halves, dtype=torch.float64)
        right = (odds.view(-1, 1, 1) * scores).sum(0).argmax(1) == self.labels[self.test]
        return 100 * right.double().mean().item()

    @torch.no_grad()
    def _layers(self, prompted: bool, zoom: float, grid: int) -> Tensor:
        """``(N, blocks, K, D)``, float16 to save memory."""
        prompt = self.prompt if prompted else None
        parts = (self.backbone.tokens(part, zoom) for part in self.images.split(100))
        with self.in_blocks() if prompted else nullcontext():
            return torch.cat([self.backbone.encode_layers(part, prompt, grid=grid)[1].half() for part in parts])

    def _heads(self, chosen: Pass) -> tuple[Tensor, Tensor]:
        """Scores of the held-out images ``(heads, M, C)`` and evidence ``(heads,)``, both float64."""
        plan = choose_layers(self.backbone, chosen.blocks, chosen.per_head, chosen.grid)
        encode = self.layers if chosen.prompted else self.unprompted
        layers = encode(chosen.prompted, chosen.zoom, chosen.grid)[:, list(plan.blocks)]
        features = F.normalize(layers.float(), dim=-1).flatten(1)
        scores, evidence = [], []
        for part, width in zip(features.split(plan.widths, dim=1), plan.widths, strict=True):
            head = RidgeHead(width, projection=0)
            head.add_rows(int(self.labels.max()) + 1)
            head.update(part[self.train], self.labels[self.train])
            scores.append(head.logits(part[self.test]).double())
            evidence.append(head.evidence())
        return torch.stack(scores), torch.stack(evidence)


def load(arguments: Sequence[str], precision: Precision) -> Loaded:
    """Backbone, images and labels of a run with held-out images, and their share."""
    args = parse_args([*arguments, "--table", TABLE, "--method", "f2ocl"])
    benchmark = make_stream(args)
    streams = (benchmark.train_stream, benchmark.test_stream)
    items = [experience.dataset[i] for s in streams for experience in s for i in range(len(experience.dataset))]
    labels = torch.tensor([label for _, label, *_ in items]).unique(return_inverse=True)[1]
    backbone = load_backbone(args.backbone, args.weights, args.image_size, precision=precision)
    share = args.held_out / (args.held_out + args.train_per_class)
    return backbone, torch.stack([image for image, *_ in items]), labels, share


def publish(results: Path, table: str, variants: Sequence[str], more: Sequence[str] = ()) -> None:
    """Writes the table of results so far: means over seeds, and their mean over data sets except ``more``."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted((results / table).glob("*-s*.json"))}
    columns = [*DATASETS, *(name for name in more if any(key.startswith(name + "-s") for key in found))]
    rows = []
    for variant in variants:
        by_data = {name: [r[variant] for key, r in found.items() if key.startswith(name + "-s")] for name in columns}
        if all(by_data.values()):
            means = {name: mean(values) for name, values in by_data.items()}
            figures = {name: f"{value:.2f}" for name, value in means.items()}
            rows.append({"variant": variant, **figures, "mean": f"{mean(means[name] for name in DATASETS):.2f}"})
    if not rows:
        return
    text = write_rows(results / table, "table", rows)
    print(text)
    to_readme(results, table, text)


def run(
    doc: str,
    table: str,
    variants: Sequence[str],
    trials: Callable[[Any, int], dict[str, float]],
    load: Callable[[Sequence[str], Precision], Any] = load,
    more: Sequence[str] = (),
) -> None:
    """Runs ``trials`` of all data sets and seeds that have no file yet, and writes the table of their accuracies.

    Args:
        doc: the command's description.
        table: folder of results.
        variants: what is tried, in the table's order.
        trials: gives accuracies by variant from what ``load`` gave and a seed.
        load: gives what a data set's trials need, from the runner's arguments and the precision.
        more: data sets besides ``DATASETS``, left out of the mean.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_arguments(parser, (*DATASETS, *more))
    parser.add_argument("--seeds", nargs="+", type=int, default=[11, 12, 13])
    parser.add_argument("--precision", choices=get_args(Precision), default="auto", help="of the frozen ViT")
    args = parser.parse_args()
    data = data_of(args)
    for name in args.datasets:
        loaded = None
        for seed in args.seeds:
            path = args.results / table / f"{name}-s{seed}.json"
            if not path.exists():
                loaded = loaded or load(data[name], args.precision)
                accuracy = trials(loaded, seed)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(accuracy, indent=1) + "\n")
    publish(args.results, table, variants, more)


def trials(loaded: Loaded, seed: int) -> dict[str, float]:
    """Accuracy by variant, in per cent."""
    trial = Trial(*loaded, seed)
    return {variant: round(trial.accuracy(*choice), 4) for variant, choice in VARIANTS.items()}


if __name__ == "__main__":
    run(__doc__, TABLE, list(VARIANTS), trials)
