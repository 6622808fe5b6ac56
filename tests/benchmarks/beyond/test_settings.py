import argparse
import json
from pathlib import Path

from avalanche_f2ocl.config import PRESETS
from benchmarks.beyond import settings
from benchmarks.runs import runner
from benchmarks.runs.methods import METHODS

ARGS = argparse.Namespace(data_dir=Path("data"), weights="w")


def test_the_search_sees_no_test_image():
    assert set(settings.data_of(ARGS)) == {*settings.DATASETS, settings.DOMAINS, settings.MANY}
    for data in settings.data_of(ARGS).values():
        run = runner.parse_args([*data, "--table", "t", "--method", settings.BEST])
        assert run.held_out and run.test_per_class is None


def test_every_variant_changes_what_is_recommended():
    for name, (method, options) in settings.VARIANTS.items():
        assert method in METHODS
        if options:
            assert all(PRESETS["best"].get(option) != value for option, value in options.items()), name


def record(folder, variant, dataset, seed, accuracy):
    path = folder / "settings" / variant / f"f2ocl-best-{dataset}-b-s{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {"dataset": dataset, "backbone": "b", "method": "f2ocl-best", "seed": seed, "A_last": accuracy}
    path.write_text(json.dumps(values))


def test_means_over_seeds_and_data_sets(tmp_path):
    for i, dataset in enumerate(settings.DATASETS):
        for seed in (1, 2):
            record(tmp_path, "grid=1", dataset, seed, 10.0 * i + seed)
    record(tmp_path, "zoom=1", "digits", 1, 50.0)
    settings.publish(tmp_path)
    rows = (tmp_path / "settings" / "table.md").read_text().splitlines()
    assert rows[2:] == ["| grid=1 | 1.50 | 11.50 | 21.50 | 31.50 | 16.50 |", "| zoom=1 | 50.00 | - | - | - | - |"]
