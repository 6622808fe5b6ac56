"""One option of a method over several values, on one data set.

    python -m benchmarks.sweep --method er500 --option lr --values 0.001 0.01 0.1 --seeds 3 -- \\
        --dataset digits --backbone micro_vit --groups 5

What follows ``--`` goes to the runner. Results lie in ``results/sweep-<method>-<option>/<value>/``.
"""

import argparse
import json
from pathlib import Path

from benchmarks.launch import launch
from benchmarks.methods import METHODS
from benchmarks.runner import RESULTS
from benchmarks.tables import load_runs, spread


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", required=True, choices=METHODS)
    parser.add_argument("--option", required=True, help="of the strategy's constructor")
    parser.add_argument("--values", nargs="+", required=True, type=json.loads, help="as JSON")
    parser.add_argument("--seeds", nargs="+", type=int, default=[3])
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, sharing the cores")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("runner", nargs=argparse.REMAINDER, help="-- and the runner's arguments")
    return parser.parse_args()


def sweep_table(folder: Path, option: str) -> str:
    """Markdown, a row per value, data set and backbone."""
    lines = [f"| {option} | dataset | backbone | seeds | A_n | F_n |", "|---|---|---|---|---:|---:|"]
    for path in sorted((p for p in folder.iterdir() if p.is_dir()), key=lambda p: json.loads(p.name)):
        for (dataset, backbone, _), records in load_runs(path).items():
            seeds = " ".join(str(record["seed"]) for record in records)
            figures = f"{spread(records, 'A_n')} | {spread(records, 'F_n')}"
            lines.append(f"| {path.name} | {dataset} | {backbone} | {seeds} | {figures} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    args = parse_args()
    table = f"sweep-{args.method}-{args.option}"
    passed_on = [argument for argument in args.runner if argument != "--"]
    runs = [
        [*passed_on, "--method", args.method, "--seed", str(seed), "--results", str(args.results)]
        + ["--table", f"{table}/{json.dumps(value)}", "--options", json.dumps({args.option: value})]
        for value in args.values
        for seed in args.seeds
    ]
    failed = launch(runs, args.jobs)
    text = sweep_table(args.results / table, args.option)
    (args.results / table / "table.md").write_text(text)
    print(text)
    if failed:
        raise SystemExit(f"{failed} of {len(runs)} runs failed")


if __name__ == "__main__":
    main()
