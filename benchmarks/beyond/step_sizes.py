"""The search for the step size of every method that trains, with the same sizes, images and passes for all.

    python -m benchmarks.beyond.step_sizes --data-dir DIR --weights vit_tiny_patch16_224.safetensors

Streams have groups of classes, mini-batches of ten and one pass; the result is the accuracy on held-out training images
over all classes at the end. Test images are not looked at. The size with the best mean over the data sets goes into
``benchmarks.runs.methods``. All runs are made in one process. If interrupted, the command continues where it stopped.
"""

import argparse
import json
from pathlib import Path
from statistics import mean

from benchmarks.beyond.settings import add_data_arguments, data_of
from benchmarks.runs import runner
from benchmarks.runs.tables import load_runs, to_readme, write_rows

TABLE = "step_sizes"
METHODS = ("linear-mask", "l2p-mask", "dualprompt-mask", "single-prompt", "coda-prompt", "mvp")
STEPS = (0.001, 0.005, 0.02)
IMAGES = {"digits": (60, 30), "caltech101": (4, 2), "cifar100": (6, 2)}
"""Training and held-out images of each class, by data set."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_arguments(parser)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--steps", nargs="+", type=float, default=STEPS)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()
    data = data_of(args)
    for method in args.methods:
        for name in [name for name in args.datasets if name in IMAGES]:
            counts = [f"--train-per-class={IMAGES[name][0]}", f"--held-out={IMAGES[name][1]}"]
            for step in args.steps:
                options = json.dumps({"lr": step, "precision": "auto"})
                run = [*data[name], *counts, "--method", method, "--seed", str(args.seed), "--options", options]
                # One evaluation, at the end.
                run += ["--every", "1000000", "--results", str(args.results), "--table", f"{TABLE}/{step}", "--quiet"]
                runner.main(run)
                publish(args.results)


def publish(results: Path) -> None:
    """Writes the table of results so far."""
    found = {float(path.name): load_runs(path) for path in (results / TABLE).iterdir() if path.is_dir()}
    rows = []
    for method in METHODS:
        for step, runs in sorted(found.items()):
            figures = {name: mean(r["A_last"] for r in rs) for (name, _, m), rs in runs.items() if m == method}
            if figures:
                # A mean over fewer data sets could not be compared with those of other rows.
                whole = mean(figures.values()) if len(figures) == len(IMAGES) else None
                shown = {name: figures.get(name) for name in IMAGES} | {"mean": whole}
                cells = {name: "-" if value is None else f"{value:.2f}" for name, value in shown.items()}
                rows.append({"method": method, "step": str(step), **cells})
    text = write_rows(results / TABLE, "table", rows)
    to_readme(results, TABLE, text)


if __name__ == "__main__":
    main()
