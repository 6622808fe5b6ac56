"""Photographs cropped as timm does in evaluation, squashed to squares, or padded to squares.

    python -m benchmarks.beyond.fits --seeds 3 4 5 -- --dataset DIR/caltech101.zip --backbone vit_tiny_patch16_224 \\
        --weights FILE --image-size 112

Everything after ``--`` goes to the runner. Writes ``results/fits/<dataset>.{json,csv,md}`` beside the runs: mean A_n
and F_n over seeds in per cent, and the difference to the same method on squashed images with its paired 95 % interval
over test images. The table goes into benchmarks/README.md.
"""

import argparse
from pathlib import Path

from benchmarks.runs import runner
from benchmarks.runs.launch import launch
from benchmarks.runs.tables import load_runs, paired_difference, publish, spread

TABLE = "fits"
FITS = ("auto", "squash", "pad")
METHODS = ("vit-ncm", "vit-ridge-layers", "f2ocl-best-0.1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[3])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, default=runner.RESULTS)
    parser.add_argument("runner", nargs="*", help="after --: the runner's arguments")
    args = parser.parse_args()
    folder = args.results / TABLE
    runs = [
        [*args.runner, "--results", str(args.results), "--table", f"{TABLE}/{fit}", "--fit", fit]
        + ["--method", method, "--seed", str(seed)]
        for seed in args.seeds
        for method in METHODS
        for fit in FITS
    ]
    if failed := launch(runs, args.jobs):
        raise SystemExit(f"{failed} runs failed")
    dataset = Path(runner.parse_args(["--table", TABLE, "--method", "f2ocl", *args.runner]).dataset).stem
    publish(
        folder,
        dataset,
        table(folder, dataset),
        runner.RESULTS.parent / "README.md" if args.results == runner.RESULTS else None,
    )


def table(folder: Path, dataset: str) -> list[dict[str, str]]:
    """A row for each method and each way of fitting."""
    by_fit = {fit: load_runs(folder / fit) for fit in FITS}
    rows = []
    for method in METHODS:
        for fit, runs in by_fit.items():
            [records] = [records for key, records in runs.items() if (key[0], key[2]) == (dataset, method)]
            [squashed] = [records for key, records in by_fit["squash"].items() if (key[0], key[2]) == (dataset, method)]
            row = {"method": method, "fit": fit, "A_n": spread(records, "A_n"), "F_n": spread(records, "F_n")}
            difference = None if fit == "squash" else paired_difference(records, squashed)
            row["to squash"] = "-" if difference is None else f"{difference[0]:+.2f} ± {difference[1]:.2f}"
            rows.append(row)
    return rows


if __name__ == "__main__":
    main()
