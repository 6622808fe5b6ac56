import numpy as np
from PIL import Image

from avalanche_f2ocl.online import OnlineResult
from avalanche_f2ocl.report import plot_accuracy_matrices, result_table

RESULT = OnlineResult(np.array([[0.5, np.nan], [0.25, 1.0]]), 0.625, 0.6, 0.25, None, 0.99, 0.101, 12.3)


def test_table():
    assert result_table({"one": RESULT}).splitlines() == [
        "| method | A_n | A_n_samples | F_n | A_k | UB | random_key | seconds |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        "| one | 62.50 | 60.00 | 25.00 | - | 99.00 | 10.10 | 12 |",
    ]


def test_picture(tmp_path):
    path = tmp_path / "new" / "matrix.png"
    plot_accuracy_matrices({"one": RESULT, "two": RESULT}, path)
    pixels = np.asarray(Image.open(path).convert("RGB"))
    assert pixels.shape[1] > pixels.shape[0] > 300 and len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50
