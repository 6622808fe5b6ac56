"""Accuracy on the classes seen so far, as groups of CIFAR-100 arrive: the README's picture, from existing runs.

    python -m benchmarks.beyond.stream_curves

It uses 100 training and 30 test images a class, a ViT-Ti at 112 px, and means over seeds. It writes
``results/stream_curves/cifar100.{json,csv,md,png}``.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from avalanche_f2ocl.evaluation.drawing import draw_curves, save
from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import load_runs, write_rows

TABLE, DATASET, CLASSES_PER_GROUP = "stream_curves", "cifar100", 10
CURVES = {
    "F2OCLStrategy.best()": ("never_below/cifar100", "f2ocl-best"),
    "ridge, nothing trained": ("never_below/cifar100", "vit-ridge-blocks"),
    "F2OCL as in the paper": ("table1-small", "f2ocl"),
    "ViT-NCM, nothing trained": ("table1-small", "vit-ncm"),
    "L2P, masked": ("table1-small", "l2p-mask"),
    "ER, 500 images kept": ("table1-small", "er500"),
}
"""Folder of the runs, and the method, by the name in the picture."""


def seen_so_far(records: list[dict]) -> np.ndarray:
    """Mean accuracy on the groups learned so far after each group, ``(n,)`` in per cent."""
    return np.mean([[np.mean(row[: i + 1]) for i, row in enumerate(record["T"])] for record in records], axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    curves, rows = {}, []
    for name, (table, wanted) in CURVES.items():
        for (dataset, _, method), records in load_runs(args.results / table).items():
            if (dataset, method) == (DATASET, wanted):
                curves[name] = seen_so_far(records)
                accuracies = {f"after group {i}": round(float(a), 2) for i, a in enumerate(curves[name], 1)}
                rows.append({"method": name, "seeds": len(records)} | accuracies)
    if not curves:
        raise SystemExit(f"no runs of {DATASET} in {args.results}: run benchmarks.paper.table1 and never_below first")
    print(write_rows(args.results / TABLE, DATASET, rows))
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    classes = {name: [CLASSES_PER_GROUP * (i + 1) for i in range(len(curve))] for name, curve in curves.items()}
    draw_curves(axes, curves, classes)
    axes.set(xlabel="classes learned", ylabel="accuracy on these classes (%)", ylim=(0, 100))
    axes.spines[["top", "right"]].set_visible(False)
    for name, curve in curves.items():
        label, end = f"{name}  {curve[-1]:.0f} %", (classes[name][-1], curve[-1])
        axes.annotate(label, end, (8, 0), textcoords="offset points", va="center", fontsize=9)
    save(figure, args.results / TABLE / f"{DATASET}.png")


if __name__ == "__main__":
    main()
