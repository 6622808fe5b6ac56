"""Accuracy on the first group as groups arrive, from table 1's runs: mean over seeds.

    python -m benchmarks.paper.forgetting --dataset cifar100

Writes ``results/forgetting/<dataset>-<backbone>.{json,csv,md,png}``.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from avalanche_f2ocl.evaluation.drawing import draw_curves, save
from benchmarks.runs.methods import METHODS
from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import load_runs, write_rows

DEFAULT_METHODS = (
    "f2ocl", "random-prompt", "vit-ncm", "linear-mask", "er500", "lwf-task-free", "l2p-mask", "l2p-ncm",
    "dualprompt-mask", "dualprompt-ncm",
)  # fmt: skip


def first_group(records: list[dict]) -> np.ndarray:
    """Mean accuracy on the first group after each group, ``(n,)`` in per cent."""
    return np.mean([[row[0] for row in record["T"]] for record in records], axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", default="table1-small", help="folder under the results")
    parser.add_argument("--dataset", default="cifar100", help="as the results name it")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=DEFAULT_METHODS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    runs = {key: records for key, records in load_runs(args.results / args.table).items() if key[0] == args.dataset}
    if not runs:
        where = args.results / args.table
        raise SystemExit(f"no results for {args.dataset} in {where}: run benchmarks.paper.table1 first")
    for backbone in sorted({key[1] for key in runs}):
        found = {method: runs.get((args.dataset, backbone, method)) for method in args.methods}
        curves = {method: first_group(records) for method, records in found.items() if records}
        rows = [
            {"method": method, "seeds": len(found[method])}
            | {f"after group {i}": round(float(value), 2) for i, value in enumerate(values, 1)}
            for method, values in curves.items()
        ]
        name = f"{args.dataset}-{backbone}"
        print(write_rows(args.results / "forgetting", name, rows))
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.subplots()
        draw_curves(axes, curves)
        axes.set(xlabel="groups learned", ylabel="accuracy on the first group (%)", title=name, ylim=(0, 100))
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        save(figure, args.results / "forgetting" / f"{name}.png")


if __name__ == "__main__":
    main()
