"""How well calibrated the probabilities are: expected calibration error (ECE), with a temperature learned online.

    python -m benchmarks.beyond.calibration --data-dir DIR --weights vit_tiny_patch16_224.safetensors
    python -m benchmarks.beyond.calibration --data-dir DIR --weights FILE --search     # how the rule was chosen

Classes arrive in ten groups (digits in five), in mini-batches of ten images, each image once. Without ``--search`` the
figures are of test images. Columns: accuracy; ECE of top probabilities in 15 bins of equal width, at temperature 1 (for
the whole model, its initial temperature), at the learned temperature, and at the one that is best for the test images
themselves; and the ECE that perfectly calibrated predictions with the same probabilities would have by chance, since
test images are few.

``best`` is the whole model with its prompt trained; the others are heads on features that are encoded once.
``--search`` holds out a fifth of the training images, and prints the ECE on them by power and growth.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import mean

import torch
from torch import Tensor

from avalanche_f2ocl import F2OCLModel
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.config import FrozenConfig
from avalanche_f2ocl.heads.calibration import Calibration, brier_scores
from avalanche_f2ocl.heads.features import feature_plan
from avalanche_f2ocl.heads.head import SumHead
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
from benchmarks.runs.tables import insert, write_rows

DATASETS = ("cifar100", "caltech101", "digits")
SEARCH_DATASETS = (*DATASETS, "pacs", "traffic_signs")
GROUPS = {"digits": 5, "pacs": 7}
METHODS: dict[str, FrozenConfig] = {
    "ncm": FrozenConfig(head="ncm"),
    "lda": FrozenConfig(head="lda"),
    "ridge": FrozenConfig(head="ridge", projection=2000),
    "ridge-blocks": FrozenConfig(head="ridge", projection=0, head_features="layers"),
}
SEARCHED: dict[str, tuple[FrozenConfig, Sequence[tuple[float, float]]]] = {
    "ncm": (METHODS["ncm"], [(power, 0.0) for power in range(4)]),
    "lda": (METHODS["lda"], [*((power, 1.1) for power in range(4)), (2, 1.5), (2, 2.0)]),
    "ridge": (
        FrozenConfig(head="ridge", projection=0),
        [(0, 1.5), (0, 2.0), (0, 3.0), (0.5, 1.25), (0.5, 1.5), (1, 1.25), (1, 1.5), (1, 2.0), (2, 1.5), (2, 2.0)],
    ),
}
"""Heads, and powers of the counts and growths that are tried."""


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
            rule: tuple[float, float] | None = None) -> tuple[SumHead, Calibration]:  # fmt: skip
    """A head and its calibration after a stream; ``rule`` replaces the head's own power and growth."""
    head = make_head(config, widths)
    if rule is not None:
        head.count_power, head.hold_growth = rule  # type: ignore[attr-defined]
    calibration = Calibration(head)
    for part in (head, calibration):
        part.add_rows(int(labels.max()) + 1)
    for number, rows in enumerate(order.split(10), start=1):
        calibration.judge(head, features[rows], labels[rows])
        head.update(features[rows], labels[rows])
        calibration.hold(head, number)
    return head, calibration


def figures(logits: Tensor, labels: Tensor, temperature: Tensor, default: float) -> dict[str, float]:
    """The figures of test images that the module describes."""
    logits = logits.double()
    right = logits.argmax(1) == labels

    def error(divisor: Tensor | float) -> float:
        return expected_calibration_error((logits / divisor).softmax(1).amax(1), right)

    grid = torch.logspace(-4, 3, 281, dtype=torch.float64)
    parts = zip(logits.split(200), labels.split(200), strict=True)
    losses = torch.stack([brier_scores(part, own, grid)[0].sum(0) for part, own in parts]).sum(0)
    return {
        "accuracy": right.double().mean().item(),
        "before": error(default),
        "learned": error(temperature),
        "best temperature": error(grid[losses.argmin()]),
        "chance": chance((logits / temperature).softmax(1).amax(1)),
        "temperature": float(temperature),
    }


def inputs(config: FrozenConfig, data: Encoded) -> Tensor:
    return data.without_prompt() if config.head_features == "layers" else data.q


def frozen(config: FrozenConfig, backbone: PromptableViT, train: Encoded, test: Encoded, order: Tensor,
           rule: tuple[float, float] | None = None) -> dict[str, float]:  # fmt: skip
    """Figures of a head on encoded images."""
    widths = feature_plan(config, backbone).widths
    head, calibration = learned(config, widths, inputs(config, train), train.labels, order, rule)
    features = inputs(config, test)
    logits = torch.cat([head.logits(part) for part in features.split(500)])
    return figures(logits, test.labels, calibration.temperature(1.0), 1.0)


def best(name: str, groups: int, seed: int, args: argparse.Namespace) -> dict[str, float]:
    """Figures of the recommended settings, the whole model."""
    train, test = images_of(name, args.data_dir)
    model = F2OCLModel.best(backbone_of(name, args), seed=seed)
    for rows in order_of(train.labels, groups, seed).split(10):
        model.learn(train.pixels[rows], train.labels[rows])
    logits = torch.cat([model(part) for part in test.pixels.split(100)])
    logits = logits[:, model.class_ids.argsort()]
    return figures(logits, test.labels, model.calibration.temperature(model.temperature), model.temperature)


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
        for method, (config, rules) in SEARCHED.items():
            for rule in rules:
                yield (
                    f"{method}-{rule[0]}-{rule[1]}",
                    partial(of_training_images, config, name, groups, seed, args, rule),
                )
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
    return frozen(config, backbone, train, test, order_of(train.labels, groups, seed))


def of_training_images(
    config: FrozenConfig, name: str, groups: int, seed: int, args: argparse.Namespace, rule: tuple[float, float]
) -> dict[str, float]:
    """Figures on a fifth of the training images, held out, under another rule."""
    backbone, train, _ = encoded(name, args)
    kept, held = hold_out(train.labels, 0.2, seed)
    return frozen(config, backbone, train.of(kept), train.of(held), order_of(train.labels[kept], groups, seed), rule)


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
    """A row for each head and rule: learned ECE on held-out images by data set, means over seeds."""
    rows = []
    for method, (_, rules) in SEARCHED.items():
        for power, growth in rules:
            row = {"head": method, "power": str(power), "growth": str(growth)}
            for name in SEARCH_DATASETS:
                runs = [json.loads(p.read_text()) for p in folder.glob(f"{method}-{power}-{growth}-{name}-s*.json")]
                row[name] = f"{mean(run['learned'] for run in runs):.3f}" if runs else "-"
            rows.append(row)
    return rows


def publish(results: Path, table: str, rows: list[dict[str, str]]) -> None:
    text = write_rows(results / table, "table", rows)
    print(text)
    if results == RESULTS:
        insert(RESULTS.parent / "README.md", table, text)


if __name__ == "__main__":
    main()
