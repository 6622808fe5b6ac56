"""How well images of unlearned classes are distinguished from known ones: AUROC, and FPR at 95 % TPR.

    python -m benchmarks.beyond.unknown --data-dir DIR --weights vit_tiny_patch16_224.safetensors
    python -m benchmarks.beyond.unknown --data-dir DIR --weights FILE --search      # how the score was chosen

A seed draws half of a data set's classes. Their training images are learned in five groups, in mini-batches of ten,
each image once. Their test images have to be distinguished from those of the other half (``other classes``), from
traffic signs and from digits. Cells: AUROC / per cent of unknown images that are accepted at the threshold that accepts
95 % of known ones. ``lost``: per cent of known test images that ``reject=0.05`` rejects, with a threshold learned on
the stream. ``--search`` compares scores on a quarter of the training images, held out. ``--best`` runs the whole
recommended model instead.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean

import torch
from torch import Tensor

from avalanche_f2ocl import F2OCLModel
from benchmarks.beyond.encoded import (
    Encoded,
    add_arguments,
    backbone_of,
    encode,
    encoded,
    hold_out,
    images_of,
    order_of,
    write_once,
)
from benchmarks.beyond.unknown_scores import METHODS, Learned, alternatives, candidates
from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import to_readme, write_rows

DATASETS = ("caltech101", "cifar100", "pacs")
FAR = ("traffic_signs", "digits")
_FAR: dict[str, Encoded] = {}


def auroc(known: Tensor, unknown: Tensor) -> float:
    """The chance that a known image's score is above an unknown one's; ties count half.

    Example:
        >>> auroc(torch.tensor([2.0, 3.0]), torch.tensor([1.0, 3.0]))
        0.625
    """
    above = (known.unsqueeze(1) > unknown).double() + 0.5 * (known.unsqueeze(1) == unknown).double()
    return above.mean().item()


def false_positives(known: Tensor, unknown: Tensor) -> float:
    """The share of unknown images whose score is at least the score that 95 % of known images reach.

    Example:
        >>> false_positives(torch.arange(100.0), torch.tensor([3.0, 50.0]))
        0.5
    """
    return (unknown >= known.double().quantile(0.05)).double().mean().item()


def halves(train: Encoded, test: Encoded, seed: int) -> tuple[Encoded, Encoded, Encoded]:
    """Training images of half of the classes, renumbered, their test images, and test images of the other classes."""
    chosen = half_of(int(train.labels.max()) + 1, seed)
    own, theirs = torch.isin(train.labels, chosen), torch.isin(test.labels, chosen)
    learned = train.of(own)
    return learned._replace(labels=torch.searchsorted(chosen, learned.labels)), test.of(theirs), test.of(~theirs)


def half_of(classes: int, seed: int) -> Tensor:
    """Half of the class labels, ascending."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randperm(classes, generator=draw)[: classes // 2].sort().values


def far_images(args: argparse.Namespace) -> dict[str, Encoded]:
    """Test images of other data sets under the photographs' backbone, encoded once."""
    if not _FAR:
        backbone = backbone_of("cifar100", args)
        _FAR.update({name: encode(backbone, images_of(name, args.data_dir)[1]) for name in FAR})
    return _FAR


def figures(score: Callable[[str], Tensor], unknown: dict[str, str]) -> dict[str, list[float]]:
    """AUROC and false positives by kind of unknown images; ``score`` takes the name of a set of images."""
    known = score("known")
    scored = {kind: score(name) for kind, name in unknown.items()}
    return {kind: [round(auroc(known, own), 5), round(false_positives(known, own), 5)] for kind, own in scored.items()}


def trial(name: str, seed: int, args: argparse.Namespace) -> dict[str, dict]:
    """Figures by score."""
    backbone, train, test = encoded(name, args)
    if args.search:
        kept, held = hold_out(train.labels, 0.25, seed)
        train, test = train.of(kept), train.of(held)
    learned, known, others = halves(train, test, seed)
    sets = {"known": known, "other classes": others, **far_images(args)}
    kinds = {kind: kind for kind in sets if kind != "known"}
    order = order_of(learned.labels, 5, seed)
    results = {}
    if not args.search:
        for label, score in candidates(learned, order).items():
            results[label] = figures(lambda kind, score=score: score(sets[kind]), kinds)
    for method in METHODS:
        model = Learned(method, backbone, learned, order)
        if args.search:
            for label, score in alternatives(model).items():
                found = figures(lambda kind, score=score: score(sets[kind]), kinds)
                results[f"{method}: {label}"] = found
        own = figures(lambda kind, model=model: model.score(sets[kind]), kinds)
        own["lost"] = lost(model.familiarity.threshold(0.05), model.score(known))
        results[f"{method}: familiarity"] = own
    return results


def lost(threshold: float, scores: Tensor) -> list[float]:
    return [round((scores < threshold).double().mean().item(), 5)]


def best(name: str, seed: int, args: argparse.Namespace) -> dict[str, dict]:
    """Figures of the whole recommended model."""
    train, test = images_of(name, args.data_dir)
    chosen = half_of(int(train.labels.max()) + 1, seed)
    own, theirs = torch.isin(train.labels, chosen), torch.isin(test.labels, chosen)
    pixels, labels = train.pixels[own], train.labels[own]
    model = F2OCLModel.best(backbone_of(name, args), seed=seed)
    for rows in order_of(labels, 5, seed).split(10):
        model.learn(pixels[rows], labels[rows])
    sets = {"known": test.pixels[theirs], "other classes": test.pixels[~theirs]}
    sets |= {kind: images_of(kind, args.data_dir)[1].pixels for kind in FAR}
    answers = {kind: [model.answers(part, k=1) for part in images.split(100)] for kind, images in sets.items()}
    kinds = {kind: kind for kind in sets if kind != "known"}
    result = figures(lambda kind: torch.cat([answer.familiarity for answer in answers[kind]]), kinds)
    result["lost"] = [round(1 - torch.cat([a.known for a in answers["known"]]).double().mean().item(), 5)]
    top = figures(lambda kind: torch.cat([answer.probabilities[:, 0] for answer in answers[kind]]), kinds)
    return {"best(), familiarity": result, "best(), top probability": top}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--search", action="store_true", help="choose on held-out training images")
    parser.add_argument("--best", action="store_true", help="the whole recommended model")
    args = parser.parse_args()
    table = "unknown-search" if args.search else "unknown"
    folder = args.results / table
    for name in args.datasets:
        for seed in args.seeds:
            path = folder / str(args.image_size) / f"{'best-' if args.best else ''}{name}-s{seed}.json"
            write_once(path, partial(best if args.best else trial, name, seed, args))
    text = write_rows(folder, "table", rows_of(folder))
    print(text)
    to_readme(args.results, table, text)


def rows_of(folder: Path) -> list[dict[str, str]]:
    """A row for each score, data set and image size: means over seeds."""
    rows = []
    for name, size in product(DATASETS, sorted(path.name for path in folder.iterdir() if path.is_dir())):
        for prefix in ("", "best-"):
            runs = [json.loads(path.read_text()) for path in sorted((folder / size).glob(f"{prefix}{name}-s*.json"))]
            for label in runs[0] if runs else ():
                row = {"known": f"half of {name}, {size} px", "score": label, "seeds": str(len(runs))}
                for kind in ("other classes", *FAR, "lost"):
                    values = [run[label][kind] for run in runs if kind in run[label]]
                    means = [mean(column) for column in zip(*values, strict=True)]
                    row[kind] = "-" if not means else f"{means[0]:.3f} / {100 * means[1]:.0f}" if len(means) > 1 else ""
                    row[kind] = row[kind] or f"{100 * means[0]:.1f}"
                rows.append(row)
    return rows


if __name__ == "__main__":
    main()
