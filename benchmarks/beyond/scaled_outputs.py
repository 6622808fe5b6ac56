"""Which makes ridge regression on frozen embeddings better, the choice of its penalty or the scaling of its outputs?

    python -m benchmarks.beyond.scaled_outputs --seeds 3 4 -- --dataset DIR/cifar100.zip \\
        --backbone vit_tiny_patch16_224 --weights FILE --image-size 112 --train-per-class 30 --test-per-class 10

Everything after ``--`` goes to the runner. Four heads learn side by side from the same embeddings, without a
projection: with the penalty of generalised cross-validation or of RanPAC's rule, and with outputs unscaled or
divided by their root mean square. The command writes ``results/scaled_outputs/<dataset>.{json,csv,md}`` and the runs
below it: mean A_n and F_n over seeds in per cent, and the gain from scaling with its paired 95 % interval over test
images.
docs/rivals.md shows the tables.
"""

import argparse
import json
from pathlib import Path

from benchmarks.runs import runner
from benchmarks.runs.launch import launch
from benchmarks.runs.tables import load_runs, paired_difference, publish, spread

TABLE = "scaled_outputs"
PENALTIES = {"gcv": "generalised cross-validation", "past": "RanPAC's rule"}
OUTPUTS = {"counts": "as they are", "equal": "scaled"}
HEADS = {
    f"{penalty}-{priors}": {
        "head": "ridge", "head_features": "q", "projection": 0, "penalty": penalty, "priors": priors,
    }  # fmt: skip
    for penalty in PENALTIES
    for priors in OUTPUTS
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[3])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, default=runner.RESULTS)
    parser.add_argument("runner", nargs="*", help="after --: the runner's arguments")
    args = parser.parse_args()
    fixed = ["--results", str(args.results), "--table", f"{TABLE}/runs"]
    fixed += ["--method", "vit-ncm", "--heads", json.dumps(HEADS)]
    if failed := launch([[*args.runner, *fixed, "--seed", str(seed)] for seed in args.seeds], args.jobs):
        raise SystemExit(f"{failed} runs failed")
    dataset = Path(runner.parse_args([*fixed, *args.runner]).dataset).stem
    publish(args.results / TABLE, dataset, table(args.results / TABLE / "runs", dataset), page=None)


def table(folder: Path, dataset: str) -> list[dict[str, str]]:
    """A row for each penalty, with and without scaling."""
    runs = {method: records for (name, _, method, *_), records in load_runs(folder).items() if name == dataset}
    rows = []
    for penalty, rule in PENALTIES.items():
        for priors, outputs in OUTPUTS.items():
            records, plain = runs[f"{penalty}-{priors}"], runs[f"{penalty}-counts"]
            worth = None if priors == "counts" else paired_difference(records, plain)
            row = {"penalty": rule, "outputs": outputs, "A_n": spread(records, "A_n"), "F_n": spread(records, "F_n")}
            rows.append(row | {"scaling is worth": "-" if worth is None else f"{worth[0]:+.2f} ± {worth[1]:.2f}"})
    return rows


if __name__ == "__main__":
    main()
