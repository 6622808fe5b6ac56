from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from avalanche_f2ocl.evaluation import plots
from avalanche_f2ocl.evaluation.anytime import AnytimeResult
from avalanche_f2ocl.evaluation.plots import (
    plot_accuracy_matrices,
    plot_anytime,
    plot_confusion,
    plot_embeddings,
    plot_forgetting,
)
from tests.evaluation.test_table import RESULT


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved."""
    figures: list[Figure] = []
    save = plots.save
    monkeypatch.setattr(plots, "save", lambda figure, path: (figures.append(figure), save(figure, path)))
    return figures


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


def test_forgetting_is_a_column_of_the_matrix(tmp_path, drawn):
    T = np.array([[0.9, np.nan, np.nan], [0.8, 0.7, np.nan], [0.5, 0.6, 1.0]])
    result = replace(RESULT, T=T)
    for group, x, y in ((0, [1, 2, 3], [90, 80, 50]), (1, [2, 3], [70, 60])):
        plot_forgetting({"one": result, "two": result}, tmp_path / "curves.png", group)
        line = drawn[-1].axes[0].lines[0]
        np.testing.assert_allclose(line.get_xdata(), x)
        np.testing.assert_allclose(line.get_ydata(), y)
    with pytest.raises(ValueError, match="group=3: there are 3 groups"):
        plot_forgetting({"one": result}, tmp_path / "curves.png", 3)


def test_confusion_shows_the_classes_with_the_most_errors(tmp_path, drawn):
    labels = [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    predictions = [0, 0, 0, 0, 1, 2, 2, 0, 1, 2, 2, 2, 3, 3, 3, 9]
    plot_confusion(predictions, labels, tmp_path / "confusion.png", {1: "cat", 2: "dog"}, most=2)
    axes = drawn[-1].axes[0]
    np.testing.assert_allclose(axes.images[0].get_array(), [[25, 50, 25], [25, 75, 0]])
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["cat", "dog"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["cat", "dog", "others"]
    assert len(drawn[-1].axes) == 2  # with a colour bar
    figure = plot_confusion([0, 1, 1], [0, 1, 0], tmp_path / "confusion.png")
    assert figure is drawn[-1]  # nothing is left out, so there are no others
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["0", "1"]
    for bad in ([], [1]):
        with pytest.raises(ValueError, match="must be as many"):
            plot_confusion(bad, labels[: 2 * len(bad)], tmp_path / "confusion.png")


def test_a_map_of_embeddings_keeps_classes_together(tmp_path, drawn):
    random = np.random.default_rng(0)
    labels = np.arange(30) % 3
    plot_embeddings(np.eye(3)[labels] + 0.05 * random.normal(size=(30, 3)), labels, tmp_path / "map.png", {2: "owl"})
    clouds = [c.get_offsets() for c in drawn[-1].axes[0].collections]
    centres = np.array([cloud.mean(0) for cloud in clouds])
    spread = max(np.linalg.norm(cloud - centre, axis=1).mean() for cloud, centre in zip(clouds, centres, strict=True))
    assert min(np.linalg.norm(centres[i] - centres[i - 1]) for i in range(3)) > 2 * spread
    assert [t.get_text() for t in drawn[-1].axes[0].get_legend().get_texts()] == ["0", "1", "owl"]
    with pytest.raises(ValueError, match="at least 4"):
        plot_embeddings(np.ones((3, 2)), [0, 1, 2], tmp_path / "map.png")
