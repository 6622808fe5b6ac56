"""Class-incremental streams as Avalanche benchmarks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from avalanche.benchmarks import (
    CLScenario,
    benchmark_from_datasets,
    with_classes_timeline,
)
from torch import Tensor

from avalanche_f2ocl import datasets
from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.streams.in_memory import InMemoryDataset


def class_incremental_stream(
    dataset: str | Path | Sequence[Any],
    groups: int = 10,
    seed: int = 0,
    train_per_class: int | None = None,
    test_per_class: int | None = None,
    *,
    image_size: int | None = None,
    root: str | Path | None = None,
) -> CLScenario:
    """Groups of classes, one after the other; every class belongs to one group.

    Class order, and the order of the training samples within a group, are functions of the seed. To
    keep that order, cut experiences with ``shuffle=False``. Groups differ by at most one class where
    they do not divide evenly; none is dropped.

    Args:
        dataset: ``"cifar100"``, ``"imagenet-r"``, ``"digits"``, a folder or zip with
            ``train/<class>/*`` and ``test/<class>/*``, or a pair of data sets; see
            :func:`avalanche_f2ocl.datasets.load`.
        groups: number of experiences n.
        seed: drives class and sample order.
        train_per_class, test_per_class: images kept of each class, the same for every seed.
        image_size, root: see :func:`avalanche_f2ocl.datasets.load`.

    Returns:
        A benchmark with ``train_stream`` and ``test_stream`` of n experiences without task labels.
        Items are uint8 ``(C, H, W)`` and an int. It also has ``class_order`` (list of ids),
        ``class_names`` (dict from id) and ``seed``.

    Raises:
        TypeError, ValueError, FileNotFoundError, OSError: more groups than classes, or as
            :func:`avalanche_f2ocl.datasets.load`.

    Example:
        >>> stream = class_incremental_stream("digits", groups=3, seed=1)
        >>> [sorted(e.classes_in_this_experience) for e in stream.train_stream]
        [[0, 3, 6, 7], [1, 2, 4], [5, 8, 9]]
    """
    check_positive_int("groups", groups)
    data = datasets.load(dataset, train_per_class, test_per_class, image_size, root)
    ids = torch.tensor(sorted(data.class_names))
    if groups > len(ids):
        raise ValueError(f"groups={groups}: the data has {len(ids)} classes, so at most {len(ids)} groups")
    order = ids[torch.randperm(len(ids), generator=generator(seed, "class-order"))]
    parts = [torch.from_numpy(part) for part in np.array_split(order.numpy(), groups)]
    train, test = ([_samples(part.targets, classes) for classes in parts] for part in (data.train, data.test))
    train = [
        part[torch.randperm(len(part), generator=generator(seed, "sample-order", i))] for i, part in enumerate(train)
    ]
    return make_benchmark(data, train, test, order.tolist(), seed)


def make_benchmark(
    data: datasets.LoadedData, train: Sequence[Tensor], test: Sequence[Tensor], class_order: list[int], seed: int
) -> CLScenario:
    """A benchmark of experiences without task labels, with what every stream tells of itself.

    Args:
        data: images and labels.
        train, test: for each experience the indices of its samples, in order, ``(n,)`` int64.
        class_order, seed: become attributes, as do the data's ``class_names``.
    """
    train = [InMemoryDataset.of(data.train).subset(part.tolist()) for part in train]
    test = [InMemoryDataset.of(data.test).subset(part.tolist()) for part in test]
    benchmark = with_classes_timeline(benchmark_from_datasets(train=train, test=test))
    benchmark.class_order, benchmark.class_names, benchmark.seed = class_order, data.class_names, seed
    return benchmark


def _samples(targets: list[int], classes: Tensor) -> Tensor:
    """Indices of the samples of some classes."""
    return torch.isin(torch.tensor(targets), classes).nonzero().squeeze(1)
