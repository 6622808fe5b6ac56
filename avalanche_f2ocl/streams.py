"""Class-incremental streams as Avalanche benchmarks."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from avalanche.benchmarks import (
    CLScenario,
    CLStream,
    DatasetExperience,
    OnlineCLExperience,
    benchmark_from_datasets,
    with_classes_timeline,
)
from avalanche.benchmarks.scenarios.online import FixedSizeExperienceSplitter
from torch import Tensor

from avalanche_f2ocl import datasets
from avalanche_f2ocl.config import check_positive_int
from avalanche_f2ocl.in_memory import InMemoryDataset
from avalanche_f2ocl.rng import generator


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


def online_stream(experiences: Iterable[DatasetExperience], batch_size: int = 10) -> CLStream:
    """Experiences cut into mini-experiences of one mini-batch, in order: what a strategy trains on online.

    As Avalanche's ``split_online_stream(experiences, batch_size, shuffle=False)``, whose stream keeps each
    mini-experience that it has made (4 kB); this one makes them again when it is gone through again.

    Args:
        experiences: of a training stream.
        batch_size: samples of a mini-experience; the last one of an experience may have fewer.

    Raises:
        TypeError, ValueError: ``batch_size`` is no positive int.

    Example:
        >>> stream = class_incremental_stream("digits", groups=5, train_per_class=6)
        >>> [len(e.dataset) for e in online_stream(stream.train_stream[:2])]
        [10, 2, 10, 2]
    """
    check_positive_int("batch_size", batch_size)
    name = getattr(experiences, "name", "train") + "_online"
    return CLStream(name, _MiniExperiences(experiences, batch_size))


class _MiniExperiences:
    """Iterable any number of times, so that Avalanche needs to keep nothing."""

    def __init__(self, experiences: Iterable[DatasetExperience], size: int) -> None:
        self.experiences, self.size = experiences, size

    def __iter__(self) -> Iterator[OnlineCLExperience]:
        for experience in self.experiences:
            yield from FixedSizeExperienceSplitter(experience, self.size, shuffle=False, seed=0)


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
