"""Variants of a method, run on one data set and put into one table.

Results of a variant lie in ``results/<table>/<variant>/``.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.runs.launch import launch
from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import Runs, load_runs, write_tables

Variants = Mapping[str, tuple[str, dict[str, Any]]]
"""Method and options by the variant's name."""


def variants_parser(doc: str, seeds: Sequence[int] = (0,)) -> argparse.ArgumentParser:
    """The arguments of every command that runs variants."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(seeds))
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, sharing the cores")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("runner", nargs=argparse.REMAINDER, help="-- and the runner's arguments")
    return parser


def run_variants(table: str, variants: Variants, args: argparse.Namespace) -> None:
    """Runs the variants for all seeds; those that are done are skipped.

    Raises:
        SystemExit: a run failed; the other runs are done by then.
    """
    passed_on = [argument for argument in args.runner if argument != "--"]
    runs = [
        [*passed_on, "--method", method, "--seed", str(seed), "--results", str(args.results)]
        + ["--table", f"{table}/{name}", "--options", json.dumps(options)]
        for seed in args.seeds
        for name, (method, options) in variants.items()
    ]
    failed = launch(runs, args.jobs)
    if failed:
        raise SystemExit(f"{failed} of {len(runs)} runs failed")


def load_variants(folder: Path, names: Sequence[str]) -> Runs:
    """Records by (dataset, backbone, variant)."""
    return {
        (dataset, backbone, name): records
        for name in names
        for (dataset, backbone, _), records in load_runs(folder / name).items()
    }


def variants_table(folder: Path, names: Sequence[str], label: str, references: Sequence[str] = ()) -> str:
    """Writes ``table.md`` and ``table.csv``, a row per variant; returns the Markdown."""
    return write_tables(folder, load_variants(folder, names), names, label, references)
