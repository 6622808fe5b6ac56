"""Curves, heat maps and points that can be read in black and white and by the colour-blind."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito, Color Universal Design, 2008.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
LINES = ("-", "--", "-.", ":")


def save(figure: Figure, path: str | Path) -> None:
    """Writes a PNG and makes its folder if necessary."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, bbox_inches="tight", pad_inches=0.1)  # so that nothing is cut


def draw_curves(
    axes: Axes, curves: Mapping[str, Any], positions: Mapping[str, Any] | None = None
) -> None:
    """Curves that differ in marker, line and colour, over ``positions`` or 1, 2, ..., with up to about ten markers."""
    styles = zip(cycle(COLOURS), cycle(MARKERS), cycle(LINES), strict=False)
    for (name, values), (colour, marker, line) in zip(curves.items(), styles, strict=False):
        x = range(1, len(values) + 1) if positions is None else positions[name]
        every = max(1, len(values) // 10)
        axes.plot(x, values, label=name, color=colour, marker=marker, markevery=every, linestyle=line)


def draw_heat_map(
    axes: Axes, values: np.ndarray, rows: Sequence, columns: Sequence, form: str = ".1f", **limits: Any
) -> None:
    """A heat map; values are written in the cells if there are at most 20 columns, and NaN stays empty."""
    image: Any = axes.imshow(values, cmap="cividis", **limits)
    size = 10 if len(columns) <= 10 else 7
    for i, j in np.argwhere(~np.isnan(values)) if len(columns) <= 20 else ():
        dark, number = image.norm(values[i, j]) < 0.5, f"{values[i, j]:{form}}"
        number = number.removeprefix("-") if float(number) == 0 else number  # rounding may leave "-0"
        axes.text(j, i, number, ha="center", va="center", color="white" if dark else "black", fontsize=size)
    # With more than 40 rows or columns, some get no label, since labels would overlap.
    down, across = (max(1, -(-len(labels) // 40)) for labels in (rows, columns))
    axes.set(xticks=range(0, len(columns), across), xticklabels=list(columns)[::across])
    axes.set(yticks=range(0, len(rows), down), yticklabels=list(rows)[::down])
    axes.tick_params(labelsize=size)


def draw_points(axes: Axes, points: np.ndarray, labels: Sequence[int]) -> None:
    """Points ``(N, 2)`` whose marker and colour show the class."""
    styles = zip(cycle(COLOURS), cycle(MARKERS), strict=False)
    for label, (colour, marker) in zip(np.unique(labels), styles, strict=False):
        own = points[np.asarray(labels) == label]
        axes.scatter(own[:, 0], own[:, 1], color=colour, marker=marker, s=28, edgecolors="black", linewidths=0.4)
    axes.set(xticks=[], yticks=[])
