"""How well calibrated the probabilities are: expected calibration error (ECE), with a temperature learned online.

    python -m benchmarks.beyond.calibration --data-dir DIR --weights vit_tiny_patch16_224.safetensors
    python -m benchmarks.beyond.calibration --data-dir DIR --weights FILE --search     # how the rule was chosen

Classes arrive in ten groups (digits in five), in mini-batches of ten images, each image once. Without ``--search`` the
figures are of test images. Columns: accuracy; ECE of top probabilities in 15 bins of equal width, at temperature 1 (for
the whole model, its initial temperature), at the learned temperature, and at the one that is best for the test images
themselves; and the ECE that perfectly calibrated predictions with the same probabilities would have by chance, since
test images are few.

``best`` is the whole model with its prompt trained; the others are heads on features that are encoded once.
``--search`` holds out a fifth of the training images, and prints the ECE on them as one choice is changed at a time.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from math import inf
from pathlib import Path
from statistics import mean

import torch
from torch import Tensor

from avalanche_f2ocl import F2OCLModel
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.config import FrozenConfig
from avalanche_f2ocl.heads.calibration import Calibration, brier_scores
from avalanche_f2ocl.heads.features import feature_plan
from avalanche_f2ocl.heads.head import Judging, SumHead
from avalanche_f2ocl.heads.make import make_head
from benchmarks.beyond.encoded import (
    Encoded,
    add_arguments,
    backbone_of,
    encoded,
    hold_out,
    images_of,
    order_of,
    write_once,
)
from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import to_readme, write_rows

DATASETS = ("cifar100", "caltech101", "digits")
SEARCH_DATASETS = (*DATASETS, "pacs", "traffic_signs")
GROUPS = {"digits": 5, "pacs": 7}
METHODS: dict[str, FrozenConfig] = {
    "ncm": FrozenConfig(head="ncm"),
    "lda": FrozenConfig(head="lda"),
    "ridge": FrozenConfig(head="ridge", projection=2000),
    "ridge-blocks": FrozenConfig(head="ridge", projection=0, head_features="layers"),
}
SEARCHED: dict[str, tuple[FrozenConfig, dict[str, tuple[float, ...]]]] = {
    "ncm": (METHODS["ncm"], {"samples": (0, 1, 3), "classes": (1, 2), "steadiness": (5, 50, inf)}),
    "lda": (METHODS["lda"], {"samples": (0, 1, 3), "classes": (1, 2), "growth": (1.5, 2), "steadiness": (5, 50, inf)}),
    "ridge": (
        FrozenConfig(head="ridge", projection=0),
        {"samples": (0, 0.5, 2), "classes": (0, 2), "growth": (1.25, 2), "steadiness": (5, 50, inf)},
    ),
    "ridge-blocks": (METHODS["ridge-blocks"], {"samples": (0, 2), "classes": (0, 2), "steadiness": (5, 50, inf)}),
}
"""Heads, and other values of what :class:`Judging` describes, of which one is changed at a time."""
AS_CHOSEN = "as chosen"


def expected_calibration_error(confidence: Tensor, right: Tensor, bins: int = 15) -> float:
    """Mean distance of confidence and accuracy over bins of equal width (Guo et al., 2017, Eq. 3).

    Args:
        confidence: probabilities of N predictions, ``(N,)`` in [0, 1].
        right: whether the predictions are right, ``(N,)`` bool.
        bins: number of bins.

    Example:
        >>> expected_calibration_error(torch.tensor([0.9, 0.9]), torch.tensor([True, False]))
        0.4
    """
    confidence = confidence.double()
    place = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gaps = torch.zeros(bins, dtype=torch.float64).index_add_(0, place, right.double() - confidence)
    return round(float(gaps.abs().sum() / len(confidence)), 6)


def chance(confidence: Tensor, draws: int = 50) -> float:
    """The average ECE that perfectly calibrated predictions with these confidences ``(N,)`` have by chance."""
    draw = torch.Generator().manual_seed(0)
    rights = (torch.rand(len(confidence), generator=draw) < confidence for _ in range(draws))
    return mean(expected_calibration_error(confidence, right) for right in rights)


def learned(config: FrozenConfig, widths: Sequence[int], features: Tensor, labels: Tensor, order: Tensor,
            judgings: Sequence[Judging | None] = (None,)) -> tuple[SumHead, list[Calibration]]:  # fmt: skip
    """A head after a stream, and a calibration for each way of judging; None for the head's own."""
    head = make_head(config, widths)
    calibrations = [Calibration(head, judging) for judging in judgings]
    for part in (head, *calibrations):
        part.add_rows(int(labels.max()) + 1)
    for number, rows in enumerate(order.split(10), start=1):
        for calibration in calibrations:
            calibration.judge(head, features[rows], labels[rows])
        head.update(features[rows], labels[rows])
        if hasattr(type(head), "linear"):  # solved once for all calibrations
            vars(head)["linear"] = cache(partial(type(head).linear, head))
        for calibration in calibrations:
            calibration.hold(head, number)
    return head, calibrations


def figures(logits: Tensor, labels: Tensor, calibration: Calibration, default: float) -> dict[str, float]:
    """The figures of test images that the module describes."""
    logits = logits.double()
    right, evened = logits.argmax(1) == labels, calibration.evened(logits)
    grid = torch.logspace(-4, 3, 281, dtype=torch.float64)
    parts = zip(evened.split(200), labels.split(200), strict=True)
    losses = torch.stack([brier_scores(part, own, grid)[0].sum(0) for part, own in parts]).sum(0)
    probabilities = calibration.probabilities(logits, default)
    return {
        "accuracy": right.double().mean().item(),
        "before": error_of((logits / default).softmax(1), labels),
        "learned": error_of(probabilities, labels),
        "best temperature": error_of((evened / grid[losses.argmin()]).softmax(1), labels),
        "chance": chance(probabilities.amax(1)),
        "temperature": float(calibration.temperature()),
    }


def error_of(probabilities: Tensor, labels: Tensor) -> float:
    """Expected calibration error of the highest of probabilities ``(N, C)``."""
    confidence, answers = probabilities.max(1)
    return expected_calibration_error(confidence, answers == labels)


def inputs(config: FrozenConfig, data: Encoded) -> Tensor:
    return data.without_prompt() if config.head_features == "layers" else data.q


def frozen(config: FrozenConfig, backbone: PromptableViT, train: Encoded, test: Encoded, order: Tensor,
           judgings: Sequence[Judging | None] = (None,)) -> tuple[Tensor, list[Calibration]]:  # fmt: skip
    """Logits of ``test`` by a head that has learned encoded images, and its calibrations."""
    widths = feature_plan(config, backbone).widths
    head, calibrations = learned(config, widths, inputs(config, train), train.labels, order, judgings)
    return torch.cat([head.logits(part) for part in inputs(config, test).split(500)]), calibrations


def best(name: str, groups: int, seed: int, args: argparse.Namespace) -> dict[str, float]:
    """Figures of the recommended settings, the whole model."""
    train, test = images_of(name, args.data_dir)
    model = F2OCLModel.best(backbone_of(name, args), seed=seed)
    for rows in order_of(train.labels, groups, seed).split(10):
        model.learn(train.pixels[rows], train.labels[rows])
    logits = torch.cat([model(part) for part in test.pixels.split(100)])
    logits = logits[:, model.class_ids.argsort()]
    return figures(logits, test.labels, model.calibration, model.temperature)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--datasets", nargs="+", choices=SEARCH_DATASETS, default=DATASETS)
    parser.add_argument("--methods", nargs="+", choices=(*METHODS, "best"), default=[*METHODS, "best"])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--search", action="store_true", help="choose on held-out training images")
    args = parser.parse_args()
    table = "calibration-search" if args.search else "calibration"
    folder = args.results / table
    for name in args.datasets:
        for seed in args.seeds:
            for key, trial in trials(name, seed, args):
                write_once(folder / f"{key}-{name}-s{seed}.json", partial(rounded, trial))
    publish(args.results, table, search_rows(folder) if args.search else report_rows(folder))


def rounded(trial: Callable[[], dict[str, float]]) -> dict[str, float]:
    return {figure: round(value, 5) for figure, value in trial().items()}


def trials(name: str, seed: int, args: argparse.Namespace) -> Iterator[tuple[str, Callable[[], dict[str, float]]]]:
    """Names of runs on a data set, and what runs them."""
    groups = GROUPS.get(name, 10)
    if args.search:
        for method, (config, others) in SEARCHED.items():
            yield method, partial(of_training_images, config, others, name, groups, seed, args)
        return
    for method in args.methods:
        if method == "best":
            yield method, partial(best, name, groups, seed, args)
        else:
            yield method, partial(of_test_images, METHODS[method], name, groups, seed, args)


def of_test_images(
    config: FrozenConfig, name: str, groups: int, seed: int, args: argparse.Namespace
) -> dict[str, float]:
    """Figures of a head on the frozen backbone."""
    backbone, train, test = encoded(name, args)
    logits, (calibration,) = frozen(config, backbone, train, test, order_of(train.labels, groups, seed))
    return figures(logits, test.labels, calibration, 1.0)


def of_training_images(config: FrozenConfig, others: dict[str, tuple[float, ...]], name: str, groups: int, seed: int,
                       args: argparse.Namespace) -> dict[str, float]:  # fmt: skip
    """Learned ECE on a fifth of the training images, held out, by what is changed."""
    backbone, train, _ = encoded(name, args)
    kept, held = hold_out(train.labels, 0.2, seed)
    own = make_head(config, feature_plan(config, backbone).widths).judging
    judgings = {AS_CHOSEN: own}
    for field, values in others.items():
        judgings |= {f"{field}={value}": own._replace(**{field: value}) for value in values}
    order, test = order_of(train.labels[kept], groups, seed), train.of(held)
    logits, calibrations = frozen(config, backbone, train.of(kept), test, order, list(judgings.values()))
    errors = [error_of(calibration.probabilities(logits.double(), 1.0), test.labels) for calibration in calibrations]
    return dict(zip(judgings, errors, strict=True))


def report_rows(folder: Path) -> list[dict[str, str]]:
    """A row for each method and data set: means over seeds."""
    rows = []
    for method in (*METHODS, "best"):
        for name in DATASETS:
            runs = [json.loads(path.read_text()) for path in sorted(folder.glob(f"{method}-{name}-s*.json"))]
            if runs:
                means = {key: f"{mean(run[key] for run in runs):.3f}" for key in runs[0]}
                rows.append({"method": method, "data": name, "seeds": str(len(runs)), **means})
    return rows


def search_rows(folder: Path) -> list[dict[str, str]]:
    """A row for each head and change: learned ECE on held-out images by data set, means over seeds."""
    rows = []
    for method in SEARCHED:
        runs = {n: [json.loads(p.read_text()) for p in folder.glob(f"{method}-{n}-s*.json")] for n in SEARCH_DATASETS}
        for changed in dict.fromkeys(key for own in runs.values() for run in own for key in run):
            row = {"head": method, "changed": changed}
            row |= {n: f"{mean(run[changed] for run in own):.3f}" if own else "-" for n, own in runs.items()}
            rows.append(row)
    return rows


def publish(results: Path, table: str, rows: list[dict[str, str]]) -> None:
    text = write_rows(results / table, "table", rows)
    print(text)
    to_readme(results, table, text)


if __name__ == "__main__":
    main()
