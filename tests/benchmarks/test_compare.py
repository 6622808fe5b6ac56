import csv
import json

import pytest

from benchmarks import compare
from benchmarks.runs import runner
from tests.benchmarks.test_commands import photographs


@pytest.fixture
def run_here(monkeypatch, capsys):
    """Runs the command, and the runs it launches, in this process; returns what it prints."""

    def launch_all(runs, jobs, publish):
        for arguments in runs:
            runner.main(["--quiet", *arguments])
        publish()

    def run(*arguments):
        monkeypatch.setattr(compare, "launch_all", launch_all)
        compare.main(list(arguments))
        return capsys.readouterr().out

    return run


def table(out):
    with (out / "table.csv").open() as file:
        return {row["method"]: row for row in csv.DictReader(file)}


def test_own_pictures_in_folders(tmp_path, run_here):
    data, out = photographs(tmp_path / "pictures"), tmp_path / "out"
    arguments = ["--dataset", str(data), "--backbone", "micro_vit", "--groups", "2", "--out", str(out)]
    printed = run_here(*arguments, "--methods", "vit-ncm", "--seeds", "0")
    first = out / "runs" / "vit-ncm-pictures-micro_vit-s0.json"
    record, before = json.loads(first.read_text()), first.stat().st_mtime_ns
    row = table(out)["vit-ncm"]
    assert list(row) == ["method", "seeds", "A_n", "F_n", "train s", "test s", "kept MB"]
    assert row["A_n"] == f"{record['A_n']:.2f}" and f"| vit-ncm | 0 | {row['A_n']} |" in printed
    assert (
        float(row["train s"]) == pytest.approx(record["train_seconds_per_1000"], rel=0.01) and float(row["test s"]) > 0
    )
    assert float(row["kept MB"]) == pytest.approx(record["kept_bytes"] / 1e6, rel=0.01)
    run_here(*arguments, "--methods", "vit-lda", "--seeds", "0")
    assert first.stat().st_mtime_ns == before  # it went on where it stopped
    accuracies = [float(row["A_n"]) for row in table(out).values()]
    assert len(accuracies) == 2 and accuracies == sorted(accuracies, reverse=True)
    assert (out / "costs.png").exists()


@pytest.mark.parametrize("arguments, said", [
    (["--groups", "2"], "0.png' cannot be read as an image"),
    (["--groups", "99"], "99"),
    (["--backbone", "vit_tinny"], "did you mean vit_tiny"),
])  # fmt: skip
def test_one_message_before_the_first_run(tmp_path, run_here, arguments, said):
    data, out = photographs(tmp_path / "pictures"), tmp_path / "out"
    if "2" in arguments:
        broken = next((data / "train").glob("*/*"))
        broken.rename(broken.with_name("0.png")).write_bytes(b"damaged")
    with pytest.raises(SystemExit, match=said):
        run_here("--dataset", str(data), "--backbone", "micro_vit", "--groups", "2", "--out", str(out), *arguments)
    assert not out.exists()


def test_streams_without_groups_are_evaluated_at_any_time(tmp_path, run_here):
    run_here(
        "--dataset", "digits", "--backbone", "micro_vit", "--methods", "vit-ncm", "--seeds", "0",
        "--stream", "si-blurry", "--every", "20", "--train-per-class", "6", "--test-per-class", "3",
        "--out", str(tmp_path),
    )  # fmt: skip
    row = table(tmp_path)["vit-ncm"]
    assert list(row)[2:4] == ["A_auc", "A_last"] and 0 < float(row["A_auc"]) <= 100


def test_runs_of_other_settings_are_not_mixed(tmp_path, run_here):
    arguments = ["--dataset", "digits", "--backbone", "micro_vit", "--out", str(tmp_path), "--methods", "vit-ncm"]
    compare.check_settings(compare.parse_args(arguments))
    compare.check_settings(compare.parse_args([*arguments, "--seeds", "7"]))
    with pytest.raises(SystemExit, match=r"other settings \(groups 5 there, 2 now\): take another --out"):
        run_here(*arguments, "--groups", "2")


def test_a_path_that_is_not_there_is_named_before_anything_runs(capsys):
    with pytest.raises(SystemExit):
        compare.parse_args(["--dataset", "nowhere", "--backbone", "micro_vit"])
    assert "nowhere: no such path; names are digits, cifar100" in capsys.readouterr().err
    args = compare.parse_args(["--dataset", "digits", "--backbone", "micro_vit"])
    assert str(args.out).replace("\\", "/") == "runs/compare-digits"


def test_costs_that_are_not_a_methods_own_are_not_given(tmp_path):
    arguments = [
        "--table", "t", "--method", "vit-ncm", "--dataset", "digits", "--backbone", "micro_vit", "--groups", "2",
        "--train-per-class", "3", "--test-per-class", "2", "--quiet", "--results", str(tmp_path),
    ]  # fmt: skip
    runner.main([*arguments, "--cache", str(tmp_path / "cache")])
    record = json.loads((tmp_path / "t" / "vit-ncm-digits-micro_vit-s0.json").read_text())
    assert record["train_seconds_per_1000"] is record["test_seconds_per_1000"] is record["kept_bytes"] is None
