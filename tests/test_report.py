import numpy as np
from PIL import Image

from avalanche_f2ocl.anytime import AnytimeResult
from avalanche_f2ocl.online import OnlineResult
from avalanche_f2ocl.report import plot_accuracy_matrices, plot_anytime, result_table

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


def test_curves_differ_in_black_and_white(tmp_path):
    x = np.arange(1, 41) * 100
    curves = {method: AnytimeResult(x, np.full(40, y), x, y, y, None, 1.0) for method, y in (("a", 0.3), ("b", 0.7))}
    path = tmp_path / "new" / "curves.png"
    plot_anytime(curves, path)
    grey = np.asarray(Image.open(path).convert("L"))
    assert grey.shape[1] > grey.shape[0] > 300
    # In its row of pixels the first line is dark throughout, the second is dashed.
    dark = (grey[:, grey.shape[1] // 4 : grey.shape[1] * 3 // 4] < 190).mean(1)
    tenth = len(dark) // 10
    first, second = dark[5 * tenth : 8 * tenth].max(), dark[tenth : 5 * tenth].max()  # without the axes' frame
    assert first > 0.95 and 0.4 < second < 0.9
