"""Results as pictures: each function writes a PNG, makes its folder if necessary, and returns the figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.manifold import TSNE

from avalanche_f2ocl.evaluation.anytime import AnytimeResult
from avalanche_f2ocl.evaluation.by_groups import GroupsResult
from avalanche_f2ocl.evaluation.drawing import draw_curves, draw_heat_map, draw_points, save


def plot_accuracy_matrices(results: Mapping[str, GroupsResult], path: str | Path) -> Figure:
    """Accuracy on each group after training on each group, side by side for all methods.

    Args:
        results: results of :func:`avalanche_f2ocl.evaluation.by_groups.run_online`, by method.
        path: path of the PNG.

    Example:
        >>> import tempfile
        >>> result = GroupsResult(np.array([[0.9, np.nan], [0.8, 0.7]]), 0.75, 0.75, 0.1, None, None, None, 1.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = plot_accuracy_matrices({"mine": result}, Path(folder) / "matrix.png")
    """
    side = max(4, 0.32 * max(len(result.T) for result in results.values()))
    figure = Figure(figsize=((side + 0.4) * len(results), side + 0.8), layout="constrained")
    for axes, (method, result) in zip(figure.subplots(1, len(results), squeeze=False)[0], results.items(), strict=True):
        groups = range(1, len(result.T) + 1)
        draw_heat_map(axes, 100 * result.T, groups, groups, ".0f", vmin=0, vmax=100)
        axes.set(
            title=method if result.A_n is None else f"{method}\nA_n {100 * result.A_n:.1f} %",
            xlabel="accuracy on group (%)",
            ylabel="after training on group",
        )
    figure.colorbar(axes.images[0], ax=figure.axes, shrink=0.8)
    save(figure, path)
    return figure


def plot_forgetting(results: Mapping[str, GroupsResult], path: str | Path, group: int = 0) -> Figure:
    """Accuracy on one group from the time it was learned, as later groups arrive; one line for each method.

    Args:
        results: results of :func:`avalanche_f2ocl.evaluation.by_groups.run_online`, by method.
        path: path of the PNG.
        group: number of the group in order of training, from 0.

    Raises:
        ValueError: there is no such group.

    Example:
        >>> import tempfile
        >>> result = GroupsResult(np.array([[0.9, np.nan], [0.8, 0.7]]), 0.75, 0.75, 0.1, None, None, None, 1.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = plot_forgetting({"mine": result}, Path(folder) / "forgetting.png")
    """
    groups = min(len(result.T) for result in results.values())
    if not 0 <= group < groups:
        raise ValueError(f"group={group}: there are {groups} groups, so 0 to {groups - 1}")
    curves = {method: 100 * result.T[group:, group] for method, result in results.items()}
    figure, axes = _one()
    draw_curves(axes, curves, {method: range(group + 1, group + 1 + len(curve)) for method, curve in curves.items()})
    axes.set(xlabel="groups learned", ylabel=f"accuracy on group {group + 1} (%)", ylim=(0, 101))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend()
    save(figure, path)
    return figure


def plot_anytime(results: Mapping[str, AnytimeResult], path: str | Path) -> Figure:
    """Accuracy over training samples; one line for each method.

    Args:
        results: results of :func:`avalanche_f2ocl.evaluation.anytime.run_anytime`, by method.
        path: path of the PNG.

    Example:
        >>> import tempfile
        >>> result = AnytimeResult(np.array([10, 20]), np.array([1.0, 0.5]), np.array([2, 4]), 0.75, 0.5, None, 1.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = plot_anytime({"mine": result}, Path(folder) / "anytime.png")
    """
    label = {
        method: f"{method}: A_auc {100 * result.A_auc:.1f} %, A_last {100 * result.A_last:.1f} %"
        for method, result in results.items()
    }
    figure, axes = _one()
    draw_curves(
        axes,
        {label[method]: 100 * result.accuracy for method, result in results.items()},
        {label[method]: result.samples for method, result in results.items()},
    )
    axes.set(xlabel="training samples", ylabel="accuracy on the classes seen so far (%)", ylim=(0, 101))
    axes.set_xlim(left=0)
    axes.legend()
    save(figure, path)
    return figure


def plot_confusion(
    predictions: Sequence[int],
    labels: Sequence[int],
    path: str | Path,
    class_names: Mapping[int, str] | None = None,
    most: int = 10,
) -> Figure:
    """The predictions for images of the classes with the most errors, in per cent of a class's images.

    Args:
        predictions: predicted class ids, ``(N,)``.
        labels: true class ids, ``(N,)``.
        path: path of the PNG.
        class_names: names by id; an id without a name is shown as a number.
        most: largest number of classes shown; predictions of any other class are in the column "others".

    Raises:
        ValueError: there are no images, or not as many predictions as labels.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = plot_confusion([0, 1, 1], [0, 0, 1], Path(folder) / "confusion.png", {0: "cat", 1: "dog"})
    """
    taken, true = np.asarray(predictions), np.asarray(labels)
    if len(true) == 0 or taken.shape != true.shape:
        raise ValueError(f"{len(taken)} predictions and {len(true)} labels: must be as many, and at least one")
    ids = np.unique(true)
    wrong = np.array([(taken[true == i] != i).sum() for i in ids])
    shown = np.sort(ids[np.lexsort((ids, -wrong))[:most]])
    shares = np.array([[(taken[true == i] == j).mean() for j in shown] for i in shown])
    names = [(class_names or {}).get(int(i), str(i)) for i in shown]
    columns, others = list(names), 1 - shares.sum(1)
    if others.max() > 1e-9:
        shares, columns = np.column_stack([shares, others]), [*names, "others"]
    figure, axes = _one((0.6 if len(shown) <= 10 else 0.4) * len(shown) + 2.5)
    draw_heat_map(axes, 100 * shares, names, columns, ".0f", vmin=0, vmax=100)
    figure.colorbar(axes.images[0], ax=axes, shrink=0.8)
    axes.set(xlabel="taken for (%)", ylabel="is")
    axes.tick_params(axis="x", rotation=90)
    save(figure, path)
    return figure


def plot_embeddings(
    embeddings: np.ndarray,
    labels: Sequence[int],
    path: str | Path,
    class_names: Mapping[int, str] | None = None,
    seed: int = 0,
) -> Figure:
    """A map of embeddings by scikit-learn's t-SNE (cosine distance).

    Args:
        embeddings: ``(N, D)`` with N at least 4, for example from ``model.backbone.encode(images)``.
        labels: class ids, ``(N,)``.
        path: path of the PNG.
        class_names: names by id; an id without a name is shown as a number.
        seed: seed of t-SNE.

    Raises:
        ValueError: there are fewer than four embeddings, or not as many embeddings as labels.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = plot_embeddings(np.eye(6), [0, 0, 0, 1, 1, 1], Path(folder) / "embeddings.png")
    """
    if len(embeddings) < 4 or len(embeddings) != len(labels):
        raise ValueError(f"{len(embeddings)} embeddings and {len(labels)} labels: must be as many, and at least 4")
    points = tsne(embeddings, seed)
    figure, axes = _one(5)
    draw_points(axes, points, labels)
    names = [(class_names or {}).get(int(i), str(i)) for i in np.unique(labels)]
    for marks, name in zip(axes.collections, names, strict=True):
        marks.set_label(name)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, path)
    return figure


def tsne(embeddings: np.ndarray, seed: int = 0) -> np.ndarray:
    """Maps embeddings ``(N, D)`` to points ``(N, 2)``, which are close to each other if the cosine is high."""
    perplexity = min(10, max(1, len(embeddings) // 3))
    return TSNE(perplexity=perplexity, metric="cosine", init="random", random_state=seed).fit_transform(embeddings)


def _one(height: float = 4.4):
    figure = Figure(figsize=(max(6.4, height * 1.2), height), layout="constrained")
    axes = figure.subplots()
    return figure, axes
