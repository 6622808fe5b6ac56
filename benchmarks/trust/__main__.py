"""Counts how often a stream is lost or a sample kept, and writes ``benchmarks/trust.md``.

    python -m benchmarks.trust

It takes about ten minutes on two cores. ``--quick`` tries little and writes nothing.
"""

import argparse
import json
import tempfile
import warnings
from functools import partial
from pathlib import Path

from avalanche.benchmarks import split_online_stream
from avalanche.training.plugins import EvaluationPlugin
from torch.utils.data import ConcatDataset

from avalanche_f2ocl import F2OCLStrategy, check_rehearsal_free, class_incremental_stream, f2ocl_metrics
from avalanche_f2ocl.rehearsal.check import held_bytes
from avalanche_f2ocl.testing.bad_batches import random_case, refusals
from benchmarks.runs.methods import METHODS, make_strategy
from benchmarks.trust.checkpoint_cost import checkpoint_cost
from benchmarks.trust.kills import count_survivals
from benchmarks.trust.long_streams import many_steps, means_error

PAGE = Path(__file__).parents[1] / "trust.md"
TRIED = {
    "kills": 25, "files": 400, "bad batches a method": 40, "classes": (100, 10_000), "updates": 10**6, "steps": 10**4,
}  # fmt: skip
QUICK = {"kills": 1, "files": 10, "bad batches a method": 1, "classes": (10,), "updates": 100, "steps": 300}
make = partial(make_strategy, backbone="micro_vit")


def trained(method: str, stream, groups: int = 2):
    strategy = make(method, evaluator=EvaluationPlugin(*f2ocl_metrics()))
    for experience in stream.train_stream[:groups]:
        strategy.train(split_online_stream([experience], 10, shuffle=False), eval_streams=[])
    strategy.eval(stream.test_stream[:groups])
    return strategy


def refused_files(tried: int, stream) -> int:
    """How many copies of a checkpoint with one bit flipped, or cut short, are refused."""
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learned"
        trained("f2ocl", stream).save(path)
        good = path.read_bytes()
        for i in range(tried):
            spoilt, place = bytearray(good), i * len(good) // tried
            if i % 2:
                spoilt = spoilt[:place]
            else:
                spoilt[place] ^= 1 << i // 2 % 8
            path.write_bytes(spoilt)
            try:
                F2OCLStrategy.load(path, backbone="micro_vit", evaluator=None)
            except ValueError:
                refused += 1
    return refused


def check_row(method: str, stream) -> dict[str, object]:
    """A method's rehearsal check, and the bytes that classes and samples cost it."""
    strategy = trained(method, stream)
    seen = ConcatDataset([experience.dataset for experience in stream.train_stream[:2]])
    report = check_rehearsal_free(strategy, seen)
    before = held_bytes(strategy)
    for experience in stream.train_stream[:2]:
        strategy.train(split_online_stream([experience], 10, shuffle=False), eval_streams=[])
    first = report.findings[0].where if report.findings else "-"
    growth = (held_bytes(strategy) - before) / len(seen)
    return {"method": method, "passed": report.passed, "bytes a further sample": growth, "first finding": first}


def measure(tried: dict) -> dict[str, object]:
    stream = class_incremental_stream("digits", 5, train_per_class=20, test_per_class=5)
    cases = [random_case(seed) for seed in range(tried["bad batches a method"])]
    refused = {method: refusals(partial(make, method), cases) for method in METHODS}
    return {
        "kills survived": (count_survivals(tried["kills"]), tried["kills"]),
        "spoilt files refused": (refused_files(tried["files"], stream), tried["files"]),
        "bad mini-batches refused, state intact": tuple(map(sum, zip(*refused.values(), strict=True))),
        "methods": [check_row(method, stream) for method in METHODS],
        "checkpoints": [checkpoint_cost(count) for count in tried["classes"]],
        "relative error of means": (means_error(tried["updates"]), tried["updates"]),
        "growth over steps": (many_steps(tried["steps"]), tried["steps"]),
    }


def page(result: dict[str, object]) -> str:
    lines = ["# What was tried", "", "`python -m benchmarks.trust`, digits on the bundled ViT, CPU.", ""]
    lines += ["| | of tried |", "|---|---:|"]
    lines += [f"| {name} | {value[0]} of {value[1]} |" for name, value in list(result.items())[:3]]
    error, updates = result["relative error of means"]
    growth, steps = result["growth over steps"]
    lines += ["", f"Largest relative error of class means after {updates:,} updates: {error:.1e}."]
    grown = ", ".join(f"{name} {value}" for name, value in growth.items())
    lines += [f"After {steps:,} steps of F2OCL: {grown}."]
    tables = {"Rehearsal check": result["methods"], "Checkpoints (ViT-B/16 sizes)": result["checkpoints"]}
    for title, rows in tables.items():
        lines += ["", f"## {title}", "", "| " + " | ".join(rows[0]) + " |", "|---|" + "---:|" * (len(rows[0]) - 1)]
        lines += ["| " + " | ".join(str(value) for value in row.values()) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    result = measure(QUICK if args.quick else TRIED)
    print(page(result))
    if not args.quick:
        PAGE.write_text(page(result))
        (PAGE.parent / "results" / "trust.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
