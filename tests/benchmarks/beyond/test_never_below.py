import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from avalanche_f2ocl.options import HeadOptions
from benchmarks.beyond import never_below
from benchmarks.runs import runner
from benchmarks.runs.methods import METHODS

ARGS = argparse.Namespace(data_dir=Path("data"), weights="w")


def test_every_stream_can_be_run():
    for name, data in never_below.streams(ARGS).items():
        for method, heads in never_below.TRAININGS.items():
            run = runner.parse_args([*data, "--table", name, "--method", method])
            assert run.method in METHODS and run.every is None
            for options in heads.values():
                HeadOptions(**options)
    assert {*never_below.RIVALS} <= {*never_below.TRAININGS, *(n for h in never_below.TRAININGS.values() for n in h)}


def record(folder, method, seed, right):
    path = folder / f"{method}-d-b-s{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {"dataset": "d", "backbone": "b", "method": method, "seed": seed, "A_n": 100 * np.mean(right), "F_n": 1.0}
    path.write_text(json.dumps(values))
    np.savez(path.with_suffix(".npz"), predictions=np.array(right), labels=np.ones(len(right)))


def test_differences_are_paired_by_image_and_averaged_over_seeds(tmp_path, capsys):
    folder = tmp_path / "never_below" / "digits"
    for seed in (3, 4):
        record(folder, "f2ocl-best", seed, [1, 1, 1, 0])
        record(folder, "vit-ncm", seed, [1, 0, seed - 3, 0])
    never_below.publish(tmp_path, ["digits", "not-run"])
    # By image 0, 1, (1 + 0) / 2, 0: mean 0.375, deviation 0.479.
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.startswith("| digits | 3 4 | 75.00 ± 0.00 | 1.00 ± 0.00 | - ")
    assert row.endswith(f"| +37.50 ± {100 * 1.96 * np.std([0, 1, 0.5, 0], ddof=1) / 2:.2f} |")


def test_f2ocl_is_compared_in_the_runs_of_rivals(tmp_path, capsys):
    folder = tmp_path / "rivals" / "cifar100-si-blurry"
    record(folder, "f2ocl-either", 3, [1, 1, 1, 1])
    record(folder, "vit-ncm", 3, [1, 1, 0, 0])
    for path in folder.glob("*.json"):
        values = json.loads(path.read_text())
        path.write_text(json.dumps(values | {"A_auc": 90.0, "A_last": values.pop("A_n")}))
    never_below.publish(tmp_path, ["digits", "cifar100-si-blurry"])
    assert capsys.readouterr().out.splitlines()[-1].startswith("| cifar100-si-blurry | 3 | 100.00 | - | +50.00 ± ")


def test_without_results_there_is_no_table(tmp_path):
    never_below.publish(tmp_path, ["digits"])
    assert not (tmp_path / "never_below").exists()


def test_an_unknown_method_is_named(capsys):
    with pytest.raises(SystemExit):
        runner.parse_args(["--table", "t", "--method", "better", "--dataset", "digits", "--backbone", "micro_vit"])
    assert "f2ocl-best" in capsys.readouterr().err
