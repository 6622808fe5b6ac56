"""The commands that make tables, on the smallest data there is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def command(*args):
    return subprocess.run(
        [sys.executable, "-m", *args], cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def test_table1_goes_on_where_it_stopped(tmp_path):
    arguments = ["benchmarks.table1", "--datasets", "digits", "--seeds", "0", "--results", str(tmp_path), "--cache"]
    done = command(*arguments, str(tmp_path / "cache"), "--methods", "vit-ncm")
    assert done.returncode == 0, done.stderr
    first = tmp_path / "table1-small" / "vit-ncm-digits-micro_vit-s0.json"
    before = first.stat().st_mtime_ns
    record = json.loads(first.read_text())
    assert 70 < record["A_n"] < 74 and record["config"]["cached_queries"]
    done = command(*arguments, str(tmp_path / "cache"), "--methods", "vit-ncm", "lwf", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert first.stat().st_mtime_ns == before
    assert "| vit-ncm | 0 | 71." in done.stdout and "| lwf | " in done.stdout


def test_a_data_set_that_is_not_there_is_named(tmp_path):
    done = command("benchmarks.table1", "--datasets", "caltech101", "--results", str(tmp_path))
    assert done.returncode == 1 and "caltech101: allowed are digits cifar100" in done.stderr


def test_a_failed_run_is_counted(tmp_path):
    done = command("benchmarks.table1", "--datasets", "digits", "--methods", "vit-ncm", "--seeds", "0",
                   "--device", "nonsense", "--results", str(tmp_path))  # fmt: skip
    assert done.returncode == 1 and "every run failed" in done.stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_sweep(tmp_path, jobs):
    done = command(
        "benchmarks.sweep", "--method", "lwf", "--option", "lr", "--values", "0.001", "0.1", "--seeds", "0",
        "--jobs", jobs, "--results", str(tmp_path), "--", "--dataset", "digits", "--backbone", "micro_vit",
        "--groups", "5", "--train-per-class", "10", "--test-per-class", "5",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = done.stdout.split("\n|---|")[1].splitlines()[1:3]
    assert rows[0].startswith("| 0.001 | 0 | ") and rows[1].startswith("| 0.1 | 0 | ")
    assert (tmp_path / "sweep-lwf-lr" / "table.csv").read_text().startswith("dataset,backbone,px")
    record = json.loads((tmp_path / "sweep-lwf-lr" / "0.1" / "lwf-digits-micro_vit-s0.json").read_text())
    assert record["config"]["lr"] == 0.1
