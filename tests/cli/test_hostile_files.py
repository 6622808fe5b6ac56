"""Files that are no pictures do not end a command, each is named, and the pictures among them are learned."""

import pytest

from benchmarks.trust.pictures import tried


@pytest.mark.filterwarnings("ignore")
def test_hostile_files_end_no_command(f2ocl, tmp_path):
    rows = tried(tmp_path, f2ocl, quick=True, workers=0)
    assert [(row["command"], row["source"]) for row in rows] == [
        (command, source) for source in ("folder", "zip") for command in ("train", "eval", "predict")
    ]
    for row in rows:
        assert row["exit code"] == 0 and row["named"] == row["cannot be read"] > 40, row
        assert row["done"] == row["pictures"] == 19 and row["right"] in (None, 19), row
