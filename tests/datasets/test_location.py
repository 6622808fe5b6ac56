import json
import subprocess
import sys
from pathlib import Path

import pytest

from avalanche_f2ocl.datasets.location import data_folder


def test_it_is_avalanches_where_avalanche_is_imported(monkeypatch, tmp_path):
    from avalanche.benchmarks.datasets.dataset_utils import AVALANCHE_CONFIG

    monkeypatch.setitem(AVALANCHE_CONFIG, "dataset_location", str(tmp_path))
    assert data_folder("cifar100") == tmp_path / "cifar100"


@pytest.mark.parametrize("configured", [True, False])
def test_it_is_the_same_without_the_import(configured, tmp_path):
    if configured:
        (tmp_path / ".avalanche").mkdir()
        (tmp_path / ".avalanche" / "config.json").write_text(json.dumps({"dataset_location": "~/elsewhere"}))
    code = (
        "import importlib.util as u, sys; spec = u.spec_from_file_location('location', sys.argv[1]); "
        "m = u.module_from_spec(spec); spec.loader.exec_module(m); print(m.data_folder('x')); "
        "assert 'avalanche' not in sys.modules"
    )
    file = sys.modules[data_folder.__module__].__file__
    environment = {"HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True, env=environment)
    expected = tmp_path / ("elsewhere" if configured else ".avalanche/data") / "x"
    assert Path(done.stdout.strip()) == expected, done.stderr
