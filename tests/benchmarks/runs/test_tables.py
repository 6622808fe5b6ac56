import csv
import json

import numpy as np
import pytest

from benchmarks.runs import tables
from benchmarks.runs.tables import cost_row, insert, load_runs, overview, paired_difference, to_readme, write_tables


def write(folder, method, seed, predictions, A_n=50.0, **more):
    labels = np.arange(4).repeat(25)
    record = dict(
        method=method, dataset="toy", backbone="vit", image_size=32, train_per_class=None, test_per_class=25,
        seed=seed, A_n=A_n, A_n_samples=A_n, F_n=10.0, A_k=None, UB=None, random_key=None, seconds=3.4,
    ) | more  # fmt: skip
    path = folder / f"{method}-toy-vit-s{seed}.json"
    path.write_text(json.dumps(record))
    np.savez_compressed(path.with_suffix(".npz"), predictions=predictions, labels=labels)


@pytest.fixture
def folder(tmp_path):
    """100 test images; the reference is right on 50, the method on these and 10 more, in seed 1 on 20 more."""
    labels = np.arange(4).repeat(25)
    for seed, more in ((0, 10), (1, 20)):
        reference = np.where(np.arange(100) < 50, labels, -1)
        write(tmp_path, "vit-ncm", seed, reference)
        write(tmp_path, "f2ocl", seed, np.where(np.arange(100) < 50 + more, labels, -1), A_n=50.0 + more, A_k=40.0)
    return tmp_path


def test_paired_difference_by_hand(folder):
    runs = load_runs(folder)
    difference, half = paired_difference(runs["toy", "vit", "f2ocl"], runs["toy", "vit", "vit-ncm"])
    values = np.array([0] * 50 + [1] * 10 + [0.5] * 10 + [0] * 30)
    assert difference == pytest.approx(15)
    assert half == pytest.approx(100 * 1.96 * values.std(ddof=1) / 10)


def test_seeds_are_paired_and_only_those_both_have(folder):
    (folder / "vit-ncm-toy-vit-s1.json").unlink()
    runs = load_runs(folder)
    assert paired_difference(runs["toy", "vit", "f2ocl"], runs["toy", "vit", "vit-ncm"])[0] == pytest.approx(10)
    assert paired_difference(runs["toy", "vit", "f2ocl"], []) is None


def test_markdown_and_csv(folder):
    text = write_tables(folder, load_runs(folder), ["f2ocl", "vit-ncm", "never-run"])
    assert "**toy**, vit, 32 px, all/25 images a class for training/test\n" in text
    row = next(line for line in text.splitlines() if line.startswith("| f2ocl"))
    figures = "65.00 ± 7.07 | 65.00 ± 7.07 | 10.00 ± 0.00 | 40.00 ± 0.00 | - | - | 3"
    assert row.startswith(f"| f2ocl | 0 1 | {figures} | +15.00 ± ") and row.endswith("| - |")
    assert (folder / "table.md").read_text() == text
    with (folder / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [r["method"] for r in rows] == ["f2ocl", "vit-ncm"] and rows[1]["to vit-ncm"] == "-"


def test_overview(folder):
    write(folder, "lwf", 0, np.zeros(100), A_n=25.0, F_n=None)
    text = overview(load_runs(folder), ["f2ocl", "lwf", "never-run"])
    assert text.splitlines() == [
        "| method | toy, vit |",
        "|---|---:|",
        "| f2ocl | 65.00 ± 7.07 / 10.00 ± 0.00 |",
        "| lwf | 25.00 / - |",
    ]


def test_costs_of_several_devices_are_not_mixed():
    spent = [("old", 1.0, 1e6), ("new", 4.0, 3e6), ("new", 6.0, 3e6), ("old", None, None)]
    records = [
        {"seed": seed, "device": device, "A_n": 50.0, "F_n": 1.0, "kept_bytes": size}
        | {"train_seconds_per_1000": seconds, "test_seconds_per_1000": seconds}
        for seed, (device, seconds, size) in enumerate(spent)
    ]
    row = cost_row(records)
    assert (row["train s"], row["test s"], row["kept MB"]) == ("5", "5", "3")
    assert cost_row(records[3:])["train s"] == "-"


def test_no_results(tmp_path):
    with pytest.raises(FileNotFoundError, match="no results"):
        write_tables(tmp_path, {}, ["f2ocl"])


def test_insert_replaces_what_is_between_the_comments(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- t -->\nold\n<!-- /t -->\nafter\n")
    insert(page, "t", "new\n")
    assert page.read_text() == "before\n<!-- t -->\nnew\n<!-- /t -->\nafter\n"
    with pytest.raises(ValueError, match="other"):
        insert(page, "other", "text")


def test_only_the_results_kept_here_go_into_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path / "results")
    page = tmp_path / "README.md"
    page.write_text("<!-- t -->\n<!-- /t -->\n")
    to_readme(tmp_path / "elsewhere", "t", "row")
    assert "row" not in page.read_text()
    to_readme(tmp_path / "results", "t", "row")
    assert page.read_text() == "<!-- t -->\nrow\n<!-- /t -->\n"
