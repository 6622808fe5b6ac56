import json
import sys

import pytest

from benchmarks.beyond import step_sizes
from benchmarks.runs import runner

ARGS = ["--data-dir", "data", "--weights", "w", "--methods", "l2p-mask", "mvp", "--steps", "0.01", "0.1"]


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """The arguments that a search would give the runner."""
    found = []
    monkeypatch.setattr(runner, "main", lambda arguments: found.append(runner.parse_args(arguments)))
    monkeypatch.setattr(step_sizes, "publish", lambda results: None)
    monkeypatch.setattr(sys, "argv", ["x", *ARGS, "--results", str(tmp_path)])
    step_sizes.main()
    return found


def test_every_method_has_the_same_runs_and_sees_no_test_image(runs):
    by_method = {
        method: [
            (r.dataset, r.train_per_class, r.held_out, r.options["lr"], r.seed) for r in runs if r.method == method
        ]
        for method in ("l2p-mask", "mvp")
    }
    assert by_method["l2p-mask"] == by_method["mvp"] and len(by_method["mvp"]) == 2 * len(step_sizes.IMAGES)
    assert all(r.held_out and r.test_per_class is None for r in runs)


def record(folder, step, dataset, accuracy):
    path = folder / "step_sizes" / step / f"mvp-{dataset}-b-s1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {"dataset": dataset, "backbone": "b", "method": "mvp", "seed": 1, "A_last": accuracy}
    path.write_text(json.dumps(values))


def test_means_over_all_data_sets_only(tmp_path):
    for accuracy, dataset in zip((10, 20, 60), step_sizes.IMAGES, strict=True):
        record(tmp_path, "0.01", dataset, accuracy)
    record(tmp_path, "0.1", "digits", 50)
    step_sizes.publish(tmp_path)
    rows = (tmp_path / "step_sizes" / "table.md").read_text().splitlines()
    assert rows[2:] == ["| mvp | 0.01 | 10.00 | 20.00 | 60.00 | 30.00 |", "| mvp | 0.1 | 50.00 | - | - | - |"]
