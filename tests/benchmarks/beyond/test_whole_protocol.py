import json

import numpy as np

from avalanche_f2ocl.options import HeadOptions
from benchmarks.beyond import whole_protocol
from benchmarks.runs.methods import METHODS


def record(folder, method, A_n, right):
    path = folder / f"{method}-cifar100-b-s3.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {"dataset": "cifar100", "backbone": "b", "method": method, "seed": 3, "A_n": A_n, "F_n": 1.0}
    path.write_text(json.dumps(values | {"seconds": 1800}))
    np.savez(path.with_suffix(".npz"), predictions=np.array(right), labels=np.ones(len(right)))


def test_methods_and_heads_can_be_made():
    assert {method for runs in whole_protocol.RUNS.values() for method, *_ in runs} <= set(METHODS)
    for heads in whole_protocol.SIDE_HEADS.values():
        for options in heads.values():
            HeadOptions(**options)


def test_best_first_with_the_difference_to_class_means(tmp_path):
    record(tmp_path / "whole_protocol" / "112", "vit-ncm", 25.0, [1, 0, 0, 0])
    record(tmp_path / "whole_protocol" / "112", "f2ocl-best", 75.0, [1, 1, 1, 0])
    whole_protocol.publish(tmp_path)
    rows = (tmp_path / "whole_protocol" / "table.md").read_text().splitlines()[2:]
    interval = 100 * 1.96 * np.std([0, 1, 1, 0], ddof=1) / 2
    assert rows[0] == f"| 112 | f2ocl-best | 3 | 75.00 | 1.00 | 0.50 | +50.00 ± {interval:.2f} |"
    assert rows[1].startswith("| 112 | vit-ncm | 3 | 25.00 | 1.00 | 0.50 | +0.00")


def test_without_results_there_is_no_table(tmp_path):
    whole_protocol.publish(tmp_path)
    assert not (tmp_path / "whole_protocol").exists()
