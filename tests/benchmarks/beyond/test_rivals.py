import argparse
import json
import sys
from pathlib import Path

import pytest

from benchmarks.beyond import rivals
from benchmarks.runs import runner
from benchmarks.runs.methods import METHODS


def test_every_run_is_one_the_runner_takes(monkeypatch, tmp_path):
    for name in ("cifar100", "caltech101", "pacs", "traffic_signs"):
        (tmp_path / f"{name}.zip").touch()
    asked = []
    monkeypatch.setattr(rivals, "launch_all", lambda runs, jobs, publish: asked.extend(runs))
    monkeypatch.setattr(sys, "argv", ["rivals", "--data-dir", str(tmp_path), "--weights", "w", "--seeds", "3"])
    rivals.main()
    runs = [runner.parse_args(run) for run in asked]
    methods = {*rivals.ON_FROZEN_FEATURES, *rivals.TRAINED, *rivals.OURS}
    assert methods <= METHODS.keys() and {run.method for run in runs} == methods
    assert len({runner.result_path(run) for run in runs}) == len(runs) == 8 * len(methods)
    assert not any(run.heads or run.cache for run in runs)  # costs would be others'
    assert {run.stream for run in runs if run.every} == {"si-blurry", "long-tailed"}


def test_with_a_cache_f2ocl_learns_alongside(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(rivals, "launch_all", lambda runs, jobs, publish: asked.extend(runs))
    monkeypatch.setattr(sys, "argv", ["rivals", "--streams", "digits", "--seeds", "4", "--cache", str(tmp_path)])
    rivals.main()
    runs = {run.method: run for run in map(runner.parse_args, asked)}
    methods = {*rivals.ON_FROZEN_FEATURES, *rivals.TRAINED, *rivals.OURS}
    assert runs.keys() == methods - {"f2ocl"} and all(run.cache == tmp_path for run in runs.values())
    heads = {method: run.heads for method, run in runs.items() if run.heads}
    assert heads == {"f2ocl-either": {"f2ocl": {"head_features": METHODS["f2ocl"][1]["head_features"]}}}


def test_costs_have_a_folder_of_their_own(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(rivals, "launch_all", lambda runs, jobs, publish: asked.extend(runs))
    monkeypatch.setattr(sys, "argv", ["rivals", "--streams", "digits", "--methods", "f2ocl", "--seeds", "4", "--costs"])
    rivals.main()
    [run] = map(runner.parse_args, asked)
    assert run.table == "rivals/digits/costs" and run.cache is None and not run.heads


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--streams", "digit"], "--streams digit: allowed are digits traffic-signs"),
        (["--streams", "traffic-signs", "--data-dir", "nowhere"], "traffic-signs needs traffic_signs.zip there"),
    ],
)
def test_what_is_missing_is_named_before_anything_runs(arguments, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rivals", *arguments])
    with pytest.raises(SystemExit):
        rivals.main()
    assert message in capsys.readouterr().err


def test_a_row_for_each_method_and_a_column_for_each_stream(tmp_path, capsys):
    def record(stream, method, seed, table="rivals", **figures):
        path = tmp_path / table / stream / f"{method}-{seed}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        values = {"dataset": "d", "backbone": "b", "method": method, "seed": seed, **figures}
        costs = {"train_seconds_per_1000": 2.0, "test_seconds_per_1000": 1.5, "kept_bytes": 3_000_000, "device": "cpu"}
        path.write_text(json.dumps(costs | values))

    for seed, accuracy in ((3, 50.0), (4, 52.0)):
        record("digits", "vit-ncm", seed, A_n=accuracy, F_n=1.0, kept_bytes=None)
    record("digits/costs", "vit-ncm", 4, A_n=0.0, F_n=0.0, kept_bytes=4_000_000, device="other")
    record("cifar100-si-blurry", "f2ocl-best", 3, A_auc=60.0, A_last=55.0)
    record("digits", "f2ocl-best", 3, "never_below", A_n=99.0, F_n=0.0)
    record("digits", "vit-ncm", 5, "never_below", A_n=0.0, F_n=0.0)  # is in the table itself
    record("cifar100-si-blurry", "f2ocl-best", 5, A_auc=61.0, A_last=57.0)
    record("cifar100-si-blurry", "f2ocl-best", 4, "never_below", A_n=0.0, F_n=None)  # is not at any time
    record("digits", "f2ocl-best", 4, "never_below", A_n=98.0, F_n=1.0)
    names = list(rivals.streams(argparse.Namespace(data_dir=Path("data"), weights="w")))
    rivals.publish(tmp_path, names)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "| method | digits | cifar100-si-blurry |"
    assert printed[2] == "| vit-ncm | 51.00 ± 1.41 / 1.00 ± 0.00 (2) | - |"
    best = "98.50 ± 0.71 / 0.50 ± 0.71 (2) | 60.50 ± 0.71 / 56.00 ± 1.41 (2)"
    assert printed[3] == f"| f2ocl-best | {best} |"
    assert printed[-2:] == ["| vit-ncm | 2 / 1.5 / 4 | - |", "| f2ocl-best | - / - / - | 2 / 1.5 / 3 |"]
