import numpy as np

from avalanche_f2ocl.evaluation.by_groups import GroupsResult
from avalanche_f2ocl.evaluation.table import result_table

RESULT = GroupsResult(np.array([[0.5, np.nan], [0.25, 1.0]]), 0.625, 0.6, 0.25, None, 0.99, 0.101, 12.3)


def test_table():
    assert result_table({"one": RESULT}).splitlines() == [
        "| method | A_n | A_n_samples | F_n | A_k | UB | random_key | seconds |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        "| one | 62.50 | 60.00 | 25.00 | - | 99.00 | 10.10 | 12 |",
    ]
