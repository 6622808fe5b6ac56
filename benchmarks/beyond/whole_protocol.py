"""The whole protocol: CIFAR-100, all 50,000 / 10,000 images, ten groups of ten classes, one pass.

    python -m benchmarks.beyond.whole_protocol --data-dir DIR --weights vit_tiny_patch16_224.safetensors --jobs 2

F2OCL, random prompts, RanPAC with 2,000 and with its authors' 10,000 random features, and all runs at 224 px are tested
only once, at the end, which halves the forward passes, so their forgetting is not measured. Runs take a third of the
time in bfloat16 if the CPU multiplies it in hardware. If interrupted, the command continues where it stopped.
"""

import argparse
import json
from itertools import chain
from pathlib import Path

from benchmarks.runs.launch import launch_all
from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import load_runs, paired_difference, spread, to_readme, write_rows

TABLE = "whole_protocol"
FROZEN, NCM = "vit-ridge-blocks", "vit-ncm"
HEADS = {
    NCM: {"head_features": "q"},
    "vit-lda": {"head": "lda", "head_features": "q"},
    "vit-ridge": {"head": "ridge", "head_features": "q", "projection": 2000},
    "vit-lda-layers": {"head": "lda", "head_features": "layers"},
}
SIDE_HEADS = {FROZEN: HEADS, "f2ocl-either": {"f2ocl": {"head_features": "z"}}}
"""Heads that learn alongside a method's own head, from the same passes."""
RUNS = {
    112: [
        (FROZEN, (3, 4, 5), True),
        ("f2ocl-best", (3,), True),
        ("f2ocl-either", (3,), False),
        ("random-prompt", (3,), False),
        ("ranpac-2000", (3,), False),
        ("ranpac", (3,), False),
    ],
    224: [(FROZEN, (3,), False), ("f2ocl-best", (3,), False)],
}
"""By image size: method, seeds, and whether all groups so far are tested after each group."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True, help="where cifar100.zip is")
    parser.add_argument("--weights", required=True, help="local checkpoint of the ViT-Ti")
    parser.add_argument("--sizes", nargs="+", type=int, choices=RUNS, default=list(RUNS))
    parser.add_argument("--methods", nargs="+", help="default all")
    parser.add_argument("--seeds", nargs="+", type=int, help="default those that were run")
    parser.add_argument("--precision", default="bfloat16", choices=("bfloat16", "float32"))
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, sharing the cores")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    vit = ["--backbone", "vit_tiny_patch16_224", "--weights", args.weights]
    common = [*vit, "--dataset", f"{args.data_dir}/cifar100.zip", "--results", str(args.results)]
    runs = [
        [*common, "--image-size", str(size), "--table", f"{TABLE}/{size}", "--method", method, "--seed", str(seed)]
        + ["--options", json.dumps({"precision": args.precision})]
        + ([] if each_group else ["--every", "1000000"])
        + ["--heads", json.dumps(SIDE_HEADS.get(method, {}))]
        for size in args.sizes
        for method, seeds, each_group in RUNS[size]
        for seed in args.seeds or seeds
        if args.methods is None or method in args.methods
    ]
    launch_all(runs, args.jobs, lambda: publish(args.results))


def publish(results: Path) -> None:
    """Writes the table of results so far, best method first."""
    rows = []
    for size in RUNS:
        found = {method: records for (_, _, method), records in load_runs(results / TABLE / str(size)).items()}
        for record in chain(*found.values()):
            # All classes have the same number of test images, so the mean over groups is that over images.
            record |= {} if "A_n" in record else {"A_n": record["A_last"], "F_n": None}
        for method in sorted(found, key=lambda name: -found[name][0]["A_n"]):
            records = found[method]
            difference = paired_difference(records, found.get(NCM, []))
            hours = sum(record["seconds"] for record in records) / len(records) / 3600
            rows.append(
                {"px": size, "method": method, "seeds": " ".join(str(record["seed"]) for record in records)}
                | {figure: spread(records, figure) for figure in ("A_n", "F_n")}
                | {"hours": f"{hours:.2f}"}
                | {"to vit-ncm": "-" if difference is None else f"{difference[0]:+.2f} ± {difference[1]:.2f}"}
            )
    if not rows:
        return
    text = write_rows(results / TABLE, "table", rows)
    print(text)
    to_readme(results, TABLE, text)


if __name__ == "__main__":
    main()
