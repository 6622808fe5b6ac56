"""Are the recommended settings ever below one of their parts or a frozen head? Eight streams, several seeds.

    python -m benchmarks.beyond.never_below --data-dir DIR --weights vit_tiny_patch16_224.safetensors --jobs 2

It compares ``best()`` with its two halves and with every frozen head, paired by test image and seed. F2OCL is compared
with ViT-NCM in the runs of ``benchmarks.beyond.rivals``. The tables go to the top of benchmarks/README.md. If
interrupted, the command continues where it stopped.
"""

import argparse
import json
from pathlib import Path

from benchmarks.runs.launch import launch_all
from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import Runs, load_runs, paired_difference, spread, to_readme, write_rows

TABLE, OTHER_TABLE = "never_below", "rivals"
RIDGE = {"head": "ridge", "projection": 0}
BEST, F2OCL, NCM = "f2ocl-best", "f2ocl-either", "vit-ncm"
TRAININGS = {
    BEST: {"prompted-half": {**RIDGE, "head_features": "layers", "grid": 2}},
    "vit-ridge-blocks": {
        NCM: {"head_features": "q"},
        "vit-lda": {"head": "lda", "head_features": "q"},
        "vit-ridge": {"head": "ridge", "head_features": "q", "projection": 2000},
        "vit-lda-layers": {"head": "lda", "head_features": "layers"},
    },
    "vit-ridge-cells": {},
}
"""Trained methods, and the heads that learn in the same training."""
RIVALS = ("vit-ridge-blocks", "prompted-half", "vit-ridge-cells", "vit-lda-layers", "vit-lda", "vit-ridge", NCM)
"""The first two are the halves of ``best()``: all blocks without prompts, and its prompted pass alone."""


def streams(args: argparse.Namespace) -> dict[str, list[str]]:
    """The runner's arguments by stream."""
    ti = ["--backbone", "vit_tiny_patch16_224", "--image-size", "112", "--weights", str(args.weights)]
    micro = ["--backbone", "micro_vit"]
    cifar = ["--dataset", f"{args.data_dir}/cifar100.zip", *ti, "--train-per-class", "100", "--test-per-class", "30"]
    pacs = ["--dataset", f"{args.data_dir}/pacs.zip", *ti]
    return {
        "digits": ["--dataset", "digits", *micro, "--groups", "5"],
        "traffic-signs": ["--dataset", f"{args.data_dir}/traffic_signs.zip", *micro],
        "caltech101": ["--dataset", f"{args.data_dir}/caltech101.zip", *ti],
        "pacs-classes": [*pacs, "--stream", "classes-of-domains", "--groups", "7"],
        "pacs-domains": [*pacs, "--stream", "domains", "--train-per-class", "40", "--test-per-class", "15"],
        "cifar100": cifar,
        "cifar100-long-tailed": [*cifar, "--stream", "long-tailed"],
        "cifar100-si-blurry": [*cifar, "--stream", "si-blurry"],
    }


def compared(runs: dict[str, Runs], method: str, rivals: tuple[str, ...]) -> list[dict[str, str]]:
    """A row per stream: the method's accuracy and forgetting, and its difference to each rival."""
    rows = []
    for stream, found in runs.items():
        by_method = {name: records for (_, _, name), records in found.items()}
        if records := by_method.get(method):
            row = {"stream": stream, "seeds": " ".join(str(record["seed"]) for record in records)}
            row |= {"A_n": spread(records, "A_n"), "F_n": spread(records, "F_n")}
            for rival in rivals:
                difference = paired_difference(records, by_method.get(rival, []))
                row[f"to {rival}"] = "-" if difference is None else f"{difference[0]:+.2f} ± {difference[1]:.2f}"
            rows.append(row)
    return rows


def publish(results: Path, names: list[str]) -> None:
    """Writes the tables of results so far."""
    own = {name: load_runs(results / TABLE / name) for name in names}
    others = {name: load_runs(results / OTHER_TABLE / name) for name in names}
    for runs in others.values():
        for record in (record for records in runs.values() for record in records if "A_last" in record):
            record |= {"A_n": record["A_last"], "F_n": None}  # accuracy was measured at any time
    texts = []
    for method, rivals, runs in ((BEST, RIVALS, own), (F2OCL, (NCM, "f2ocl"), others), ("f2ocl", (NCM,), others)):
        if rows := compared(runs, method, rivals):
            texts.append(f"**{method}**\n\n{write_rows(results / TABLE, method, rows)}")
    text = "\n\n".join(texts)
    print(text)
    to_readme(results, TABLE, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True, help="where the zips are")
    parser.add_argument("--weights", required=True, help="local checkpoint of the ViT-Ti")
    parser.add_argument("--seeds", nargs="+", type=int, default=[3, 4, 5])
    parser.add_argument("--streams", nargs="+")
    parser.add_argument("--methods", nargs="+", choices=TRAININGS, default=list(TRAININGS))
    parser.add_argument("--precision", default="float32", choices=("bfloat16", "float32"), help="of the frozen ViT")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, sharing the cores")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    data = streams(args)
    runs = [
        [*data[name], "--results", str(args.results), "--table", f"{TABLE}/{name}", "--method", method]
        + ["--seed", str(seed), "--heads", json.dumps(TRAININGS[method])]
        + ["--options", json.dumps({"precision": args.precision})]
        for seed in args.seeds
        for name in args.streams or data
        for method in args.methods
    ]
    launch_all(runs, args.jobs, lambda: publish(args.results, list(data)))


if __name__ == "__main__":
    main()
