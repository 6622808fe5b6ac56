import numpy as np
from matplotlib.colors import rgb_to_hsv, to_rgb
from matplotlib.figure import Figure

from avalanche_f2ocl.evaluation.drawing import COLOURS, draw_curves, draw_heat_map, draw_points


def test_ten_curves_and_ten_classes_differ_without_colour():
    axes = Figure().subplots()
    draw_curves(axes, {str(i): [i, i + 1] for i in range(10)})
    assert len({line.get_marker() for line in axes.lines}) == 10
    points = Figure().subplots()
    draw_points(points, np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 10)
    shapes = {tuple(np.round(c.get_paths()[0].vertices, 3).flatten()) for c in points.collections}
    assert len(shapes) == 10


def test_colours_are_distinct():
    assert len({tuple(np.round(rgb_to_hsv(to_rgb(colour)), 2)) for colour in COLOURS}) == len(COLOURS)


def test_heat_map_writes_its_values():
    axes = Figure().subplots()
    draw_heat_map(axes, np.array([[1.25, np.nan], [30.0, 45.67]]), [1, 3], [1, 2])
    assert sorted(text.get_text() for text in axes.texts) == ["1.2", "30.0", "45.7"]


def test_twenty_groups_have_numbers_and_no_minus_before_nothing():
    axes = Figure(figsize=(6.4, 6.4)).subplots()
    draw_heat_map(axes, np.full((20, 20), -1e-9), range(20), range(20), ".0f")
    assert {text.get_text() for text in axes.texts} == {"0"} and len(axes.texts) == 400
    assert len(axes.get_xticklabels()) == len(axes.get_yticklabels()) == 20
    draw_heat_map(axes := Figure().subplots(), np.zeros((100, 100)), range(100), range(100))
    assert not axes.texts and len(axes.get_xticklabels()) <= 40
