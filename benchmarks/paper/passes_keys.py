"""A_n by optimiser steps per mini-batch and keys per prediction; keys are varied on one trained model.

    python -m benchmarks.paper.passes_keys --passes 1 3 5 --keys 1 2 3 -- --dataset DIR/cifar100.zip \\
        --backbone vit_tiny_patch16_224 --weights FILE --image-size 112 --train-per-class 50 --test-per-class 20

What follows ``--`` goes to the runner. Writes ``results/passes_keys/heat_map.{json,csv,md,png}``, means over seeds.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from avalanche_f2ocl.evaluation.drawing import draw_heat_map, save
from benchmarks.runs.tables import load_runs, write_rows
from benchmarks.runs.variants import run_variants, variants_parser

TABLE = "passes_keys"


def heat_map(folder: Path, passes: list[int], keys: list[int]) -> np.ndarray:
    """A_n in per cent, ``(passes, keys)``."""
    values = np.full((len(passes), len(keys)), np.nan)
    for i, count in enumerate(passes):
        (records,) = load_runs(folder / f"passes={count}").values()
        values[i] = np.mean([[record["A_n_by_keys"][str(k)] for k in keys] for record in records], axis=0)
    return values


def main() -> None:
    parser = variants_parser(__doc__)
    parser.add_argument("--passes", nargs="+", type=int, default=[1, 3, 5, 10, 15])
    parser.add_argument("--keys", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    args = parser.parse_args()
    args.runner += ["--eval-keys", *map(str, args.keys)]
    run_variants(TABLE, {f"passes={count}": ("f2ocl", {"passes": count}) for count in args.passes}, args)
    folder = args.results / TABLE
    values = heat_map(folder, args.passes, args.keys)
    names = ["passes", *(f"keys {k}" for k in args.keys)]
    rows = [
        dict(zip(names, [count, *row.round(2).tolist()], strict=True))
        for count, row in zip(args.passes, values, strict=True)
    ]
    print(write_rows(folder, "heat_map", rows))
    figure = Figure(figsize=(1.5 + len(args.keys), 1.5 + 0.8 * len(args.passes)), layout="constrained")
    axes = figure.subplots()
    draw_heat_map(axes, values, args.passes, args.keys)
    axes.set(xlabel="keys per prediction", ylabel="passes per mini-batch", title="A_n (%)")
    save(figure, folder / "heat_map.png")


if __name__ == "__main__":
    main()
