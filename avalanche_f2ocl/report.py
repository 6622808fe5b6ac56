"""Results as a table to read and a picture to look at."""

from collections.abc import Mapping
from itertools import cycle
from pathlib import Path

from avalanche_f2ocl.anytime import AnytimeResult
from avalanche_f2ocl.online import OnlineResult

COLUMNS = ("A_n", "A_n_samples", "F_n", "A_k", "UB", "random_key")


def result_table(results: Mapping[str, OnlineResult]) -> str:
    """A Markdown table of results by method, in per cent and seconds; "-" where a method has no such figure."""
    lines = ["| method | " + " | ".join(COLUMNS) + " | seconds |", "|---|" + "---:|" * (len(COLUMNS) + 1)]
    for method, result in results.items():
        figures = [getattr(result, name) for name in COLUMNS]
        cells = ["-" if value is None else f"{100 * value:.2f}" for value in figures]
        lines.append(f"| {method} | " + " | ".join(cells) + f" | {result.seconds:.0f} |")
    return "\n".join(lines)


def plot_accuracy_matrices(results: Mapping[str, OnlineResult], path: str | Path) -> None:
    """Writes the accuracy matrices side by side as a PNG; its folder is made if need be."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * len(results), 4), layout="constrained")
    for axes, (method, result) in zip(figure.subplots(1, len(results), squeeze=False)[0], results.items(), strict=True):
        image = axes.imshow(100 * result.T, vmin=0, vmax=100, cmap="viridis")
        n = len(result.T)
        if n <= 10:
            for i in range(n):
                for j in range(i + 1):
                    value = 100 * result.T[i, j]
                    axes.text(j, i, f"{value:.0f}", ha="center", va="center", color="white" if value < 60 else "black")
        axes.set(
            title=f"{method}: A_n {100 * result.A_n:.1f} %",
            xlabel="accuracy on group (%)",
            ylabel="after training on group",
            xticks=range(n),
            yticks=range(n),
            xticklabels=range(1, n + 1),
            yticklabels=range(1, n + 1),
        )
    figure.colorbar(image, ax=figure.axes, shrink=0.8)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, bbox_inches="tight")


def plot_anytime(results: Mapping[str, AnytimeResult], path: str | Path) -> None:
    """Writes the accuracy over training samples, a line per method, as a PNG; its folder is made if need be.

    Line styles and markers tell methods apart, not colours alone.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    styles = zip(cycle(("-", "--", "-.", ":")), cycle("osv^Dx"), strict=False)
    for (method, result), (line, marker) in zip(results.items(), styles, strict=False):
        label = f"{method}: A_auc {100 * result.A_auc:.1f} %, A_last {100 * result.A_last:.1f} %"
        axes.plot(
            result.samples,
            100 * result.accuracy,
            linestyle=line,
            marker=marker,
            markevery=max(1, len(result.samples) // 10),
            label=label,
        )
    axes.set(xlabel="training samples", ylabel="accuracy on the classes seen so far (%)", ylim=(0, 101))
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.legend()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, bbox_inches="tight")
