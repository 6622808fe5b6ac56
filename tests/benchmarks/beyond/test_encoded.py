import json

from benchmarks.beyond.encoded import write_once


def test_what_an_earlier_run_found_stays(tmp_path):
    path = tmp_path / "table" / "digits-s1.json"
    for found in ({"a": 0.5}, {"a": 0.9}):
        write_once(path, lambda found=found: found)
    assert json.loads(path.read_text()) == {"a": 0.5}
