"""Accuracy plotted against cost, with a point for each method."""

from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from avalanche_f2ocl.evaluation.drawing import COLOURS, MARKERS, save


class Point(NamedTuple):
    """A method.

    Attributes:
        accuracy: accuracy in per cent.
        deviation: standard deviation over seeds; 0 with one seed.
        train, test: seconds per 1,000 training and test images.
    """

    accuracy: float
    deviation: float
    train: float
    test: float


def draw_costs(points: Mapping[str, Point], accuracy: str, path: Path) -> Figure:
    """Two panels, training and testing, with seconds on a logarithmic axis, and a legend with the best method first.

    Args:
        points: points by method.
        accuracy: name of the accuracy.
        path: path of the PNG.
    """
    figure = Figure(figsize=(11, max(4.5, 0.27 * len(points))), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    best_first = sorted(points.items(), key=lambda item: -item[1].accuracy)
    for panel, part in zip(panels, ("train", "test"), strict=True):
        for (name, point), colour, marker in zip(best_first, cycle(COLOURS), cycle(MARKERS)):
            panel.errorbar(
                getattr(point, part), point.accuracy, point.deviation or None, label=f"{point.accuracy:.1f}  {name}",
                color=colour, marker=marker, markersize=8, markeredgecolor="black", linestyle="none", capsize=3,
            )  # fmt: skip
        panel.set(xscale="log", xlabel=f"seconds per 1,000 {part}ing images".replace("testing", "test"))
        for formatter in (panel.xaxis.set_major_formatter, panel.xaxis.set_minor_formatter):
            formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(2, 0.5)))  # plain numbers
        panel.grid(alpha=0.3, which="both")
    panels[0].set_ylabel(f"{accuracy}, per cent")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend([handle[0] for handle in handles], labels, loc="outside right upper", frameon=False)
    save(figure, path)
    return figure
