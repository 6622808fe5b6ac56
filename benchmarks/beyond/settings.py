"""How the recommended settings were chosen: held-out training images of several data sets, several seeds.

    python -m benchmarks.beyond.settings --data-dir DIR --weights vit_tiny_patch16_224.safetensors --jobs 2

Each variant changes one setting. Test images are not looked at. The table goes into benchmarks/README.md: accuracy at
the end, in per cent, as means over seeds, and the mean over data sets. If interrupted, the command continues where it
stopped.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from benchmarks.runs.launch import launch_all
from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import load_runs, to_readme, write_rows

TABLE = "settings"
BEST = "f2ocl-best"
DATASETS = ("digits", "caltech101", "pacs", "cifar100")
DOMAINS = "pacs-domains"
"""PACS as a stream of domains, which the search for these settings leaves out."""
MANY = "cifar100-many"
"""CIFAR-100 with more images a class, which only ``benchmarks.beyond.ceiling`` uses."""
VARIANTS = {
    "as recommended": (BEST, {}),
    "an untrained prompt": ("random-prompt-best", {}),
    "max_drift=0.5": (BEST, {"max_drift": 0.5}),
    "max_drift=1": (BEST, {"max_drift": 1.0}),
    "max_drift=8": (BEST, {"max_drift": 8.0}),
    "the prompt never stops": (BEST, {"max_drift": None}),
    "lr=0.03": (BEST, {"lr": 0.03}),
    "grid=1": (BEST, {"grid": 1}),
    "zoom=1": (BEST, {"zoom": 1.0}),
    "zoom=1.6": (BEST, {"zoom": 1.6}),
    "vote='equal'": (BEST, {"vote": "equal"}),
    "blocks=4": (BEST, {"blocks": 4}),
}


def add_data_arguments(parser: argparse.ArgumentParser, datasets: Sequence[str] = DATASETS) -> None:
    """Where the data sets and the weights are, which of them, and where results go."""
    parser.add_argument("--data-dir", type=Path, required=True, help="where cifar100.zip, caltech101.zip, pacs.zip are")
    parser.add_argument("--weights", required=True, help="local checkpoint of the ViT-Ti")
    parser.add_argument("--datasets", nargs="+", choices=datasets, default=datasets)
    parser.add_argument("--results", type=Path, default=RESULTS)


def data_of(args: argparse.Namespace) -> dict[str, list[str]]:
    """The runner's arguments by data set, with held-out training images in the place of the test images."""
    vit = ["--backbone", "vit_tiny_patch16_224", "--image-size", "112", "--weights", args.weights]

    def part(name: str, train: int, held_out: int, *more: str) -> list[str]:
        counts = ["--train-per-class", str(train), "--held-out", str(held_out)]
        return ["--dataset", f"{args.data_dir}/{name}.zip", *vit, *counts, *more]

    return {
        "digits": ["--dataset", "digits", "--backbone", "micro_vit", "--groups", "5"]
        + ["--train-per-class", "100", "--held-out", "40"],
        "caltech101": part("caltech101", 12, 4),
        "pacs": part("pacs", 240, 120, "--stream", "classes-of-domains", "--groups", "7"),
        DOMAINS: part("pacs", 40, 15, "--stream", "domains"),
        "cifar100": part("cifar100", 40, 20),
        MANY: part("cifar100", 100, 25),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_arguments(parser)
    parser.add_argument("--seeds", nargs="+", type=int, default=[11, 12])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, sharing the cores")
    args = parser.parse_args()
    data = data_of(args)
    # One evaluation, at the end.
    common = ["--every", "1000000", "--results", str(args.results)]
    runs = [
        [*data[name], *common, "--table", f"{TABLE}/{variant}", "--method", method, "--seed", str(seed)]
        + ["--options", json.dumps(options)]
        for seed in args.seeds
        for name in args.datasets
        for variant in args.variants
        for method, options in [VARIANTS[variant]]
    ]
    launch_all(runs, args.jobs, lambda: publish(args.results))


def publish(results: Path) -> None:
    """Writes the table of results so far."""
    rows = []
    for variant in VARIANTS:
        runs = load_runs(results / TABLE / variant)
        means = {name: mean(r["A_last"] for r in records) for (name, *_), records in runs.items()}
        if means:
            figures = {name: f"{means[name]:.2f}" if name in means else "-" for name in DATASETS}
            # A mean over fewer data sets could not be compared with those of other rows.
            whole = len(means) == len(DATASETS)
            rows.append({"variant": variant, **figures, "mean": f"{mean(means.values()):.2f}" if whole else "-"})
    if not rows:
        return
    text = write_rows(results / TABLE, "table", rows)
    print(text)
    to_readme(results, TABLE, text)


if __name__ == "__main__":
    main()
