import argparse
import json

import pytest

from avalanche_f2ocl.options import HeadOptions
from benchmarks.beyond import __main__ as beyond
from benchmarks.runs import runner
from benchmarks.runs.methods import METHODS
from tests.benchmarks.runs.test_runner import arguments

ARGS = argparse.Namespace(data_dir="data", weights="w", seeds=[3, 4], search_seed=11)


@pytest.mark.parametrize("part", beyond.PARTS)
def test_every_run_has_a_file_of_its_own_and_heads_that_exist(part, tmp_path):
    runs = [runner.parse_args([*run, "--results", str(tmp_path)]) for run in beyond.runs_of(part, ARGS)]
    assert len({runner.result_path(run) for run in runs}) == len(runs)
    for run in runs:
        assert run.method in METHODS
        for options in run.heads.values():
            HeadOptions(**options)
        assert (run.every is None) == (run.stream == "groups")
    assert {run.method for run in runs} <= {*beyond.ORDER, *beyond.ANYTIME}


def test_the_search_sees_no_test_image_and_no_seed_of_the_tables():
    for run in map(runner.parse_args, beyond.runs_of("search", ARGS)):
        assert run.held_out and run.test_per_class is None and run.seed not in ARGS.seeds


def test_tables_of_what_is_there(tmp_path):
    folder = tmp_path / "beyond"
    small = {"vit-ncm": {"head_features": "q"}, "vit-lda": {"head": "lda", "head_features": "q"}}
    runner.main([
        *arguments("vit-ridge-layers", tmp_path), "--table", "beyond/groups", "--heads", json.dumps(small)
    ])  # fmt: skip
    for seed in ("3", "4"):
        anytime = ["--table", "beyond/streams/shuffled", "--stream", "shuffled", "--every", "30", "--seed", seed]
        runner.main([*arguments("vit-ncm", tmp_path), *anytime])
    searched = ["--table", "beyond/search/default", "--held-out", "4"]
    runner.main([*arguments("vit-ridge-layers", tmp_path), *searched])
    beyond.write(tmp_path)
    record = json.loads((folder / "streams/shuffled/vit-ncm-digits-micro_vit-s3.json").read_text())
    assert record["samples"] == [30, 60] and record["A_last"] == record["accuracy"][-1]
    assert record["A_auc"] == pytest.approx(sum(record["accuracy"]) / 2, abs=1e-3)
    rows = (folder / "streams.md").read_text().splitlines()
    assert rows[2].startswith("| shuffled | digits | vit-ncm | 3 4 | ") and len(rows) == 3
    assert (folder / "streams/shuffled-digits.png").stat().st_size > 10_000
    groups = (folder / "groups.md").read_text()
    assert groups.index("| vit-ridge-layers |") < groups.index("| vit-ncm |") < groups.index("| vit-lda |")
    assert "| vit-ridge-layers | default | " in (folder / "search.md").read_text()
