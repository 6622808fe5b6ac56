"""The commands that make tables, on the smallest data there is."""

import importlib
import json
import sys
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from avalanche_f2ocl.backbone.weights import load_vit
from benchmarks.beyond import fits
from benchmarks.paper import table1
from benchmarks.runs import runner, variants


@pytest.fixture
def run_here(monkeypatch, capsys):
    """Runs a command, and the runs it launches, in this process: an import of Avalanche takes seconds."""

    def launch(runs, jobs=1):
        for arguments in runs:
            runner.main(["--quiet", *arguments])
        return 0

    def run(name, *arguments):
        monkeypatch.setattr(variants, "launch", launch)
        monkeypatch.setattr(table1, "launch", launch)
        monkeypatch.setattr(fits, "launch", launch)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        importlib.import_module(name).main()
        return capsys.readouterr().out

    return run


@pytest.fixture
def few_digits(monkeypatch):
    """Of table1's data sets only this one."""
    sets = {"digits": [*SMALLEST[1:], "--train-per-class", "10", "--test-per-class", "30"]}
    monkeypatch.setattr(table1, "data_sets", lambda args: sets)


def test_table1_goes_on_where_it_stopped(tmp_path, run_here, few_digits):
    arguments = ["--seeds", "0", "--results", str(tmp_path), "--cache", str(tmp_path / "cache"), "--methods", "vit-ncm"]
    run_here("benchmarks.paper.table1", *arguments)
    first = tmp_path / "table1-small" / "vit-ncm-digits-micro_vit-s0.json"
    before = first.stat().st_mtime_ns
    record = json.loads(first.read_text())
    assert 60 < record["A_n"] < 80 and record["config"]["cached_queries"]
    printed = run_here("benchmarks.paper.table1", *arguments, "lwf", "--jobs", "2")
    assert first.stat().st_mtime_ns == before
    assert f"| vit-ncm | 0 | {record['A_n']:.2f}" in printed and "| lwf | " in printed


def test_a_data_set_that_is_not_there_is_named(tmp_path, run_here):
    with pytest.raises(SystemExit, match="caltech101: allowed are digits cifar100"):
        run_here("benchmarks.paper.table1", "--datasets", "caltech101", "--results", str(tmp_path))


def test_runs_are_processes_of_their_own_and_failed_ones_are_counted(tmp_path, monkeypatch, few_digits, capfd):
    options = ["--methods", "vit-ncm", "--seeds", "0", "--device", "nonsense", "--results", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["benchmarks.paper.table1", *options])
    with pytest.raises(SystemExit, match="every run failed"):
        table1.main()
    assert "string: nonsense" in capfd.readouterr().err


def test_sweep(tmp_path, run_here):
    printed = run_here(
        "benchmarks.runs.sweep", "--method", "lwf", "--option", "lr", "--values", "0.001", "0.1", "--seeds", "0",
        "--jobs", "2", "--results", str(tmp_path), "--", "--dataset", "digits", "--backbone", "micro_vit",
        "--groups", "5", "--train-per-class", "10", "--test-per-class", "5",
    )  # fmt: skip
    rows = printed.split("\n|---|")[1].splitlines()[1:3]
    assert rows[0].startswith("| 0.001 | 0 | ") and rows[1].startswith("| 0.1 | 0 | ")
    assert (tmp_path / "sweep-lwf-lr" / "table.csv").read_text().startswith("dataset,backbone,px")
    record = json.loads((tmp_path / "sweep-lwf-lr" / "0.1" / "lwf-digits-micro_vit-s0.json").read_text())
    assert record["config"]["lr"] == 0.1


SMALLEST = ["--", "--dataset", "digits", "--backbone", "micro_vit", "--groups", "5", "--train-per-class", "4",
            "--test-per-class", "3"]  # fmt: skip


def test_ablation_runs_what_is_asked_for_and_compares_with_the_default(tmp_path, run_here):
    only = ["--only", "default", "no prompt", "prompt_length=1"]
    out = run_here("benchmarks.paper.ablation", "--results", str(tmp_path), *only, *SMALLEST)
    rows = {line.split(" | ")[0]: line for line in out.splitlines() if line.startswith("| ")}
    assert list(rows) == ["| variant", "| default", "| no prompt", "| prompt_length=1"]
    assert "to default" in rows["| variant"]
    (path,) = (tmp_path / "ablation" / "prompt_length=1").glob("*.json")
    assert json.loads(path.read_text())["config"]["prompt_length"] == 1


def test_every_variant_of_the_ablation_is_an_option_other_than_the_default():
    from dataclasses import replace

    from avalanche_f2ocl.config import F2OCLConfig
    from benchmarks.paper.ablation import OPTIONS

    default = F2OCLConfig(head_features="z")
    for name, values in OPTIONS.items():
        for value in values:
            assert getattr(replace(default, **{name: value}), name) != getattr(default, name)


def test_table2(tmp_path, run_here):
    out = run_here("benchmarks.paper.table2", "--results", str(tmp_path), *SMALLEST)
    assert "| mean keys | 0 | " in out and "| gradient keys, own label's prompt | 0 | " in out
    (path,) = (tmp_path / "table2" / "gradient keys").glob("*.json")
    assert json.loads(path.read_text())["config"]["key_update"] == "gradient"


def test_passes_and_keys(tmp_path, run_here):
    arguments = ["--passes", "1", "2", "--keys", "1", "3", "--results", str(tmp_path), *SMALLEST]
    run_here("benchmarks.paper.passes_keys", *arguments)
    folder = tmp_path / "passes_keys"
    rows = json.loads((folder / "heat_map.json").read_text())
    for row in rows:
        (path,) = (folder / f"passes={row['passes']}").glob("*.json")
        record = json.loads(path.read_text())
        assert record["config"]["passes"] == row["passes"] and set(record["A_n_by_keys"]) == {"1", "3"}
        assert row["keys 1"] == pytest.approx(record["A_n"], abs=0.01)
        assert row["keys 3"] == pytest.approx(record["A_n_by_keys"]["3"], abs=0.01)
    assert [row["passes"] for row in rows] == [1, 2]
    assert_is_a_picture(folder / "heat_map.png")


def test_forgetting_is_the_first_column_of_the_accuracy_matrices(tmp_path, run_here):
    folder = tmp_path / "some-table"
    folder.mkdir()
    for seed, first in ((0, [90, 80]), (1, [70, 50])):
        record = {"method": "vit-ncm", "dataset": "toy", "backbone": "vit", "seed": seed}
        record["T"] = [[first[0], None], [first[1], 30]]
        (folder / f"{seed}.json").write_text(json.dumps(record))
    where = ("--table", "some-table", "--dataset", "toy", "--results", str(tmp_path))
    out = run_here("benchmarks.paper.forgetting", *where)
    assert "| vit-ncm | 2 | 80.0 | 65.0 |" in out
    assert (tmp_path / "forgetting" / "toy-vit.csv").read_text().splitlines()[1] == "vit-ncm,2,80.0,65.0"
    assert_is_a_picture(tmp_path / "forgetting" / "toy-vit.png")
    with pytest.raises(SystemExit, match="run benchmarks.paper.table1 first"):
        run_here("benchmarks.paper.forgetting", "--dataset", "none", "--results", str(tmp_path))


def test_stream_curves_are_means_over_the_groups_learned_so_far(tmp_path, run_here):
    folder = tmp_path / "table1-small"
    folder.mkdir()
    for seed, T in ((0, [[90, None], [80, 30]]), (1, [[70, 10], [50, 40]])):
        record = {"method": "vit-ncm", "dataset": "cifar100", "backbone": "vit", "seed": seed, "T": T}
        (folder / f"{seed}.json").write_text(json.dumps(record))
    out = run_here("benchmarks.beyond.stream_curves", "--results", str(tmp_path))
    assert "| ViT-NCM, nothing trained | 2 | 80.0 | 50.0 |" in out
    assert_is_a_picture(tmp_path / "stream_curves" / "cifar100.png")
    with pytest.raises(SystemExit, match="run benchmarks.paper.table1"):
        run_here("benchmarks.beyond.stream_curves", "--results", str(tmp_path / "empty"))


def test_embeddings(tmp_path, run_here):
    arguments = ["--methods", "f2ocl", "l2p-mask", "--classes", "4", "--images", "3", "--results", str(tmp_path)]
    run_here("benchmarks.paper.embeddings", *arguments, *SMALLEST)
    folder = tmp_path / "embeddings"
    points = json.loads((folder / "points.json").read_text())
    assert Counter(p["representation"] for p in points) == dict.fromkeys(["pixels", "ViT", "f2ocl", "l2p-mask"], 12)
    assert set(Counter((p["representation"], p["class"]) for p in points).values()) == {3}
    assert [row["representation"] for row in json.loads((folder / "separation.json").read_text())] == [
        "pixels", "ViT", "f2ocl", "l2p-mask",
    ]  # fmt: skip
    assert_is_a_picture(folder / "embeddings.png")


def assert_is_a_picture(path):
    with Image.open(path) as image:
        assert len(np.unique(image.convert("L"))) > 10


def test_stale_sums_lose_nothing_where_prompts_do_not_move(tmp_path, run_here, monkeypatch):
    """And something where they do: one head on the same training, and the oracle."""
    from benchmarks.beyond import stale_sums

    still = {"prompt_assignment": "shared", "lr": 1e-9}
    monkeypatch.setattr(stale_sums, "PROMPTS", {"still": still, "moving": {"prompt_assignment": "shared"}})
    monkeypatch.setattr(stale_sums, "HEADS", {"ncm": {}})
    printed = run_here(
        "benchmarks.beyond.stale_sums", "--dataset", "digits", "--backbone", "micro_vit", "--groups", "5",
        "--train-per-class", "8", "--test-per-class", "5", "--quiet", "--results", str(tmp_path),
    )  # fmt: skip
    rows = json.loads((tmp_path / "stale_sums" / "digits.json").read_text())
    assert abs(rows[0]["lost"]) < 0.5 < rows[1]["lost"] and "| moving | ncm |" in printed


def test_what_scaled_outputs_are_worth(tmp_path, run_here):
    printed = run_here(
        "benchmarks.beyond.scaled_outputs", "--results", str(tmp_path), "--", "--dataset", "digits",
        "--backbone", "micro_vit", "--groups", "2", "--train-per-class", "6", "--test-per-class", "3",
    )  # fmt: skip
    rows = json.loads((tmp_path / "scaled_outputs" / "digits.json").read_text())
    assert [row["scaling is worth"] == "-" for row in rows] == [True, False] * 2
    assert "| RanPAC's rule | scaled |" in printed


def photographs(folder):
    """Two classes of pictures with a bright middle and dark ends, which a crop does not see."""
    draw = np.random.default_rng(0)
    for split in ("train", "test"):
        for name, level in (("ant", 90), ("bee", 160)):
            (folder / split / name).mkdir(parents=True)
            for i in range(4):
                pixels = draw.integers(level - 30, level + 30, (30, 60, 3), dtype=np.uint8)
                pixels[:, :15] = pixels[:, 45:] = 0
                Image.fromarray(pixels).save(folder / split / name / f"{i}.png")
    return folder


def test_ways_of_fitting_photographs(tmp_path, run_here, monkeypatch):
    monkeypatch.setattr(fits, "METHODS", ("vit-ncm",))
    data = photographs(tmp_path / "photographs")
    more = ["--", "--dataset", str(data), "--backbone", "micro_vit", "--groups", "2"]
    printed = run_here("benchmarks.beyond.fits", "--seeds", "0", "--results", str(tmp_path), *more)
    rows = {row["fit"]: row for row in json.loads((tmp_path / "fits" / "photographs.json").read_text())}
    assert list(rows) == ["auto", "squash", "pad"] and rows["squash"]["to squash"] == "-"
    for fit, row in rows.items():
        (path,) = (tmp_path / "fits" / fit).glob("*.json")
        record = json.loads(path.read_text())
        assert record["fit"] == fit and row["A_n"] == f"{record['A_n']:.2f}" and f"| vit-ncm | {fit} | " in printed


def test_from_the_disk(tmp_path, run_here, monkeypatch):
    from benchmarks.speed import from_disk

    monkeypatch.setattr(from_disk, "MADE", 20)
    monkeypatch.setattr(from_disk.timm, "create_model", lambda name, num_classes: load_vit("micro_vit"))
    arguments = ["--images", "20", "--rounds", "1", "--methods", "vit-ncm", "--results", str(tmp_path)]
    run_here("benchmarks.speed.from_disk", *arguments, "--files")
    [row] = json.loads((tmp_path / "from_disk" / "throughput.json").read_text())
    assert row["disk / memory"] == pytest.approx(row["disk"] / row["memory"], rel=0.05)
    from_disk.make_photographs(tmp_path / "made", 210)
    assert len(list((tmp_path / "made" / "train").rglob("*.jpg"))) == 210
    figures = from_disk.learn(str(tmp_path / "made"))
    assert figures["peak_mb"] > figures["listed_mb"] > 100 and figures["images_a_second"] > 0
