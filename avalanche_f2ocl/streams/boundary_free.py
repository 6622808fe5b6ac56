"""Streams without boundaries as Avalanche benchmarks: one training experience whose samples come in a given order.

All these streams have one training experience, to be cut by :func:`avalanche_f2ocl.online_stream` or by Avalanche's
``split_online_stream(stream.train_stream, 10, shuffle=False)``, so that mini-batches cross every change of classes.
The test stream has one experience with all test images. Orders are functions of the seed (see
:mod:`avalanche_f2ocl.streams.orders`), in which every training image comes once. Items and attributes are those of
:func:`avalanche_f2ocl.class_incremental_stream`; ``class_order`` is the order of first appearance. Options after the
seed, ``**loading``, are those of :func:`avalanche_f2ocl.datasets.load`: ``train_per_class``, ``test_per_class``,
``root``, ``image_size``, ``fit``, ``in_memory``, ``workers``.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from avalanche.benchmarks import CLScenario
from torch import Tensor

from avalanche_f2ocl import datasets
from avalanche_f2ocl.streams import orders as sample_orders
from avalanche_f2ocl.streams.class_incremental import make_benchmark


def si_blurry_stream(
    dataset: str | Path | Sequence[Any] | Mapping[str, Any],
    tasks: int = 5,
    disjoint: float = 0.5,
    blur: float = 0.1,
    seed: int = 0,
    **loading: Any,
) -> CLScenario:
    """Si-Blurry: some classes come in one task only, others leak into other tasks; tasks differ in size at random.

    :func:`avalanche_f2ocl.streams.orders.si_blurry_tasks` gives the source and the exact random draws.

    Args:
        dataset: a name, a path or a pair of data sets, see :func:`avalanche_f2ocl.class_incremental_stream`.
        tasks: number of tasks, at least 1; nothing in the stream marks where one ends.
        disjoint: share of the classes that come in one task only.
        blur: share of the other classes' images that are distributed over all tasks.
        seed: seed of every random draw.
        **loading: see :mod:`avalanche_f2ocl.streams.boundary_free`.

    Raises:
        TypeError, ValueError: an option is not allowed.
        FileNotFoundError, OSError: the data set cannot be loaded, see :func:`avalanche_f2ocl.datasets.load`.

    Example:
        >>> stream = si_blurry_stream("digits", tasks=3, train_per_class=5)
        >>> len(stream.train_stream), len(stream.train_stream[0].dataset), len(stream.test_stream[0].dataset)
        (1, 50, 360)
    """
    return _stream(dataset, sample_orders.si_blurry_order, seed, loading, tasks=tasks, disjoint=disjoint, blur=blur)


def drifting_stream(
    dataset: str | Path | Sequence[Any] | Mapping[str, Any], width: float = 0.1, seed: int = 0, **loading: Any
) -> CLScenario:
    """Classes come and go gradually, each around its own time.

    Args:
        dataset: a name, a path or a pair of data sets, see :func:`avalanche_f2ocl.class_incremental_stream`.
        width: standard deviation of a class's samples in time, as a share of the stream.
        seed: seed of every random draw.
        **loading: see :mod:`avalanche_f2ocl.streams.boundary_free`.

    Raises:
        TypeError, ValueError: an option is not allowed.
        FileNotFoundError, OSError: the data set cannot be loaded, see :func:`avalanche_f2ocl.datasets.load`.

    Example:
        >>> stream = drifting_stream("digits", width=0.001, train_per_class=2)
        >>> list(stream.train_stream[0].dataset.targets)
        [4, 4, 3, 3, 6, 6, 9, 9, 5, 5, 2, 2, 1, 1, 7, 7, 8, 8, 0, 0]
    """
    return _stream(dataset, sample_orders.drifting_order, seed, loading, width=width)


def long_tailed_stream(
    dataset: str | Path | Sequence[Any] | Mapping[str, Any],
    imbalance: float = 100,
    groups: int = 1,
    seed: int = 0,
    **loading: Any,
) -> CLScenario:
    """Class sizes fall exponentially, from that of the largest class to 1/imbalance of it.

    The sizes are assigned to classes at random. Surplus images of a class are left out; a class with too few images
    keeps all of them. Test images stay as they are. :func:`avalanche_f2ocl.streams.orders.long_tail_counts` gives the
    source.

    Args:
        dataset: a name, a path or a pair of data sets, see :func:`avalanche_f2ocl.class_incremental_stream`.
        imbalance: ratio of the largest class size to the smallest, at least 1.
        groups: number of random groups of classes that come one after the other; 1 shuffles all classes together.
        seed: seed of every random draw.
        **loading: see :mod:`avalanche_f2ocl.streams.boundary_free`.

    Raises:
        TypeError, ValueError: an option is not allowed, or there are more groups than classes.
        FileNotFoundError, OSError: the data set cannot be loaded, see :func:`avalanche_f2ocl.datasets.load`.

    Example:
        >>> stream = long_tailed_stream("digits", imbalance=10, train_per_class=100)
        >>> torch.tensor(list(stream.train_stream[0].dataset.targets)).bincount().sort().values.tolist()
        [10, 12, 16, 21, 27, 35, 46, 59, 77, 100]
    """
    return _stream(dataset, sample_orders.long_tailed_order, seed, loading, imbalance=imbalance, groups=groups)


def shuffled_stream(
    dataset: str | Path | Sequence[Any] | Mapping[str, Any], seed: int = 0, **loading: Any
) -> CLScenario:
    """All classes mixed, uniformly.

    Args:
        dataset: a name, a path or a pair of data sets, see :func:`avalanche_f2ocl.class_incremental_stream`.
        seed: seed of every random draw.
        **loading: see :mod:`avalanche_f2ocl.streams.boundary_free`.

    Raises:
        TypeError, ValueError: an option is not allowed.
        FileNotFoundError, OSError: the data set cannot be loaded, see :func:`avalanche_f2ocl.datasets.load`.

    Example:
        >>> list(shuffled_stream("digits", train_per_class=1).train_stream[0].dataset.targets)
        [4, 0, 8, 9, 3, 2, 5, 7, 6, 1]
    """
    return _stream(dataset, sample_orders.shuffled_order, seed, loading)


def recurring_stream(
    dataset: str | Path | Sequence[Any] | Mapping[str, Any],
    groups: int = 5,
    repeats: int = 2,
    seed: int = 0,
    **loading: Any,
) -> CLScenario:
    """Groups of classes come, go and come back, with new images at each visit: no image comes twice.

    Args:
        dataset: a name, a path or a pair of data sets, see :func:`avalanche_f2ocl.class_incremental_stream`.
        groups: number of groups of classes.
        repeats: number of visits of each group, which share its images evenly.
        seed: seed of every random draw.
        **loading: see :mod:`avalanche_f2ocl.streams.boundary_free`.

    Raises:
        TypeError, ValueError: an option is not allowed, or there are more groups than classes.
        FileNotFoundError, OSError: the data set cannot be loaded, see :func:`avalanche_f2ocl.datasets.load`.

    Example:
        >>> stream = recurring_stream("digits", groups=10, repeats=2, train_per_class=2)
        >>> list(stream.train_stream[0].dataset.targets)
        [4, 3, 6, 9, 5, 2, 1, 7, 8, 0, 4, 3, 6, 9, 5, 2, 1, 7, 8, 0]
    """
    return _stream(dataset, sample_orders.recurring_order, seed, loading, groups=groups, repeats=repeats)


def _stream(
    dataset: str | Path | Sequence[Any] | Mapping[str, Any],
    order: Callable[..., Tensor],
    seed: int,
    loading: dict,
    **options: Any,
) -> CLScenario:
    data = datasets.load(dataset, **loading)
    targets = torch.tensor(data.train.targets)
    train = order(targets, seed, **options)
    class_order = list(dict.fromkeys(targets[train].tolist()))
    return make_benchmark(data, [train], [torch.arange(len(data.test))], class_order, seed)
