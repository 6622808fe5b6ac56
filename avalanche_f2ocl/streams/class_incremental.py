"""Class-incremental streams as Avalanche benchmarks."""

from collections.abc import Mapping, Sequence
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
from avalanche_f2ocl.datasets.image_files import FilesOnDisk
from avalanche_f2ocl.datasets.image_tensors import ImageTensors
from avalanche_f2ocl.image_fit import ImageFit
from avalanche_f2ocl.options import Fit
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.streams.batched import BatchedDataset


def class_incremental_stream(
    dataset: str | Path | Sequence[Any] | Mapping[str, Any],
    groups: int = 10,
    seed: int = 0,
    train_per_class: int | None = None,
    test_per_class: int | None = None,
    *,
    image_size: int | None = None,
    root: str | Path | None = None,
    fit: Fit | ImageFit = "auto",
    in_memory: bool | None = None,
    workers: int | None = None,
) -> CLScenario:
    """A stream of groups of classes, one after the other; every class belongs to one group.

    The order of the classes, and of the training samples within a group, is a function of the seed. To
    keep that order, cut experiences with ``shuffle=False``. If the classes do not divide evenly, groups
    differ by one class; no class is dropped.

    Args:
        dataset: ``"cifar100"``, ``"imagenet-r"``, ``"cub200"``, ``"tiny-imagenet"``, ``"imagenet-a"`` or ``"digits"``;
            the path of a folder, zip or tar with ``train/<class>/*`` and ``test/<class>/*``; or a pair of data sets,
            such as Hugging Face's, WebDataset's tars, torchvision's or others; see
            :func:`avalanche_f2ocl.datasets.load`.
        groups: number n of groups, and of experiences.
        seed: seed of the order of classes and samples.
        train_per_class, test_per_class: number of images kept of each class, the same images for every seed.
        image_size: side in pixels that images of a folder or archive are fitted to; None for one that suits them.
        root: folder for downloads.
        fit: how images become squares, see :class:`avalanche_f2ocl.image_fit.ImageFit`.
        in_memory: whether decoded images are held in memory; by default up to 2 GiB are. Otherwise they stay on the
            disk and are decoded ahead of their use, with the same bits.
        workers: number of processes that decode images from the disk; by default one a core, four at most.

    Returns:
        A benchmark with ``train_stream`` and ``test_stream`` of n experiences without task labels.
        Items are uint8 ``(C, H, W)`` and an int. It also has ``class_order`` (list of ids),
        ``class_names`` (dict of names by id) and ``seed``.

    Raises:
        TypeError, ValueError: an option is not allowed, or there are more groups than classes.
        FileNotFoundError, OSError: the data set cannot be loaded, see :func:`avalanche_f2ocl.datasets.load`.

    Example:
        >>> stream = class_incremental_stream("digits", groups=3, seed=1)
        >>> [sorted(e.classes_in_this_experience) for e in stream.train_stream]
        [[0, 3, 6, 7], [1, 2, 4], [5, 8, 9]]
    """
    check_positive_int("groups", groups)
    data = datasets.load(
        dataset, train_per_class, test_per_class, image_size, root, fit=fit, in_memory=in_memory, workers=workers
    )
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
    """A benchmark of experiences without task labels, with the attributes that every stream has.

    Args:
        data: images and labels.
        train, test: for each experience the indices of its samples, in order, ``(n,)`` int64.
        class_order, seed: become attributes of the benchmark, as the data's ``class_names`` do.
    """
    experiences = {"train": _experiences(data.train, train), "test": _experiences(data.test, test)}
    benchmark = with_classes_timeline(benchmark_from_datasets(**experiences))
    for stream in (benchmark.train_stream, benchmark.test_stream):
        stream.benchmark = benchmark  # where strategies look for the classes' names
    benchmark.class_order, benchmark.class_names, benchmark.seed = class_order, data.class_names, seed
    return benchmark


def _experiences(data: ImageTensors | FilesOnDisk, parts: Sequence[Tensor]) -> list[BatchedDataset]:
    if isinstance(data, FilesOnDisk):  # decoded ahead in their order
        starts = torch.tensor([0, *map(len, parts)]).cumsum(0).tolist()
        data, parts = data.arranged(torch.cat(list(parts))), list(map(torch.arange, starts[:-1], starts[1:]))
    return [BatchedDataset.of(data).subset(part.tolist()) for part in parts]


def _samples(targets: list[int], classes: Tensor) -> Tensor:
    """Indices of the samples of some classes."""
    return torch.isin(torch.tensor(targets), classes).nonzero().squeeze(1)
