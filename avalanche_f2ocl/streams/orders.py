"""Orders of the samples of a data set, as functions of their labels and a seed.

Each order sorts the samples by a key (a task, a time or a visit); samples with equal keys are shuffled.
"""

import torch
from torch import Tensor

from avalanche_f2ocl.arguments import check_positive, check_positive_int, check_share
from avalanche_f2ocl.rng import generator


def shuffled_order(targets: Tensor, seed: int) -> Tensor:
    """All classes mixed, uniformly; labels ``targets (N,)`` -> indices ``(N,)`` int64, each once.

    Example:
        >>> shuffled_order(torch.tensor([7, 7, 3, 3]), seed=0).tolist()
        [3, 1, 2, 0]
    """
    return _by_key(torch.zeros_like(targets), seed)


def si_blurry_order(targets: Tensor, seed: int, tasks: int = 5, disjoint: float = 0.5, blur: float = 0.1) -> Tensor:
    """Task after task of :func:`si_blurry_tasks`, whose arguments it takes; indices ``(N,)`` int64, each once.

    Example:
        >>> si_blurry_order(torch.tensor([7, 7, 3, 3]), seed=0, tasks=2, blur=0).tolist()
        [3, 2, 1, 0]
    """
    return _by_key(si_blurry_tasks(targets, seed, tasks, disjoint, blur), seed)


def si_blurry_tasks(targets: Tensor, seed: int, tasks: int = 5, disjoint: float = 0.5, blur: float = 0.1) -> Tensor:
    """The task of each sample in Si-Blurry: numbers of classes and of samples differ at random between tasks.

    A share ``disjoint`` of the classes, rounded, stays whole. Of the other classes' samples, a share ``blur``, rounded,
    is drawn and assigned to tasks again, possibly to the task they came from. The sequence of classes and the sequence
    of drawn samples are each cut at ``tasks - 1`` random places. No class is dropped.

    Source: Moon et al., Online Class Incremental Learning on Stochastic Blurry Task Boundary via Mask and Visual
    Prompt Tuning, ICCV 2023.

    Args:
        targets: labels ``(N,)`` int64.
        seed: seed of every random draw.
        tasks: number of tasks, at least 1; some may stay empty.
        disjoint, blur: shares in [0, 1].

    Returns:
        ``(N,)`` int64 in ``range(tasks)``.

    Raises:
        TypeError, ValueError: an option is out of range.

    Example:
        >>> si_blurry_tasks(torch.tensor([7, 7, 3, 3]), seed=0, tasks=2, blur=0).tolist()
        [1, 1, 0, 0]
    """
    check_positive_int("tasks", tasks)
    check_share("disjoint", disjoint)
    check_share("blur", blur)
    draw = generator(seed, "si-blurry")
    place, classes = _class_places(targets, seed)
    whole = round(disjoint * classes)
    home = torch.cat([_random_parts(count, tasks, draw) for count in (whole, classes - whole)])
    task = home[place]
    blurry = (place >= whole).nonzero().squeeze(1)
    drawn = blurry[torch.randperm(len(blurry), generator=draw)[: round(blur * len(blurry))]]
    task[drawn] = _random_parts(len(drawn), tasks, draw)
    return task


def drifting_order(targets: Tensor, seed: int, width: float = 0.1) -> Tensor:
    """Classes come and go gradually: a class's samples are normally distributed in time around a centre.

    The centres divide the stream evenly, in a random order of classes.

    Args:
        targets: labels ``(N,)`` int64.
        seed: seed of every random draw.
        width: standard deviation, as a share of the stream.

    Returns:
        ``(N,)`` int64, each index once.

    Raises:
        TypeError, ValueError: ``width`` is not positive and finite.

    Example:
        >>> targets = torch.tensor([7, 7, 3, 3])
        >>> targets[drifting_order(targets, seed=0, width=0.01)].tolist()
        [7, 7, 3, 3]
    """
    check_positive("width", width)
    place, classes = _class_places(targets, seed)
    noise = torch.randn(len(targets), dtype=torch.float64, generator=generator(seed, "drift"))
    return _by_key((place + 0.5) / classes + width * noise, seed)


def long_tailed_order(targets: Tensor, seed: int, imbalance: float = 100, groups: int = 1) -> Tensor:
    """Keeps as many samples of each class as :func:`long_tail_counts` says, for a random order of the classes.

    The samples are all shuffled, or come in one group of classes after another. A class with too few samples keeps all
    of them. Groups are random, so each may have frequent and rare classes.

    Args:
        targets: labels ``(N,)`` int64.
        seed: seed of every random draw.
        imbalance: ratio of the largest class size to the smallest, at least 1.
        groups: number of groups of classes that come one after the other; 1 mixes all classes.

    Returns:
        ``(n,)`` int64, each kept index once.

    Raises:
        TypeError, ValueError: an option is out of range.

    Example:
        >>> targets = torch.arange(3).repeat_interleave(4)
        >>> targets[long_tailed_order(targets, seed=0, imbalance=4)].bincount().tolist()
        [4, 1, 2]
    """
    place, classes = _class_places(targets, seed)
    _check_groups(groups, classes)
    rank, sizes = _ranks_in_class(targets, seed)
    counts = long_tail_counts(int(sizes.max()), classes, imbalance)
    kept = (rank < counts[place]).nonzero().squeeze(1)
    group = _class_places(targets, seed, "group-order")[0] * groups // classes
    return kept[_by_key(group[kept], seed)]


def long_tail_counts(largest: int, classes: int, imbalance: float) -> Tensor:
    r"""Class sizes :math:`n_c = n_0 \cdot \mathrm{imbalance}^{-c/(C-1)}`, rounded down, at least 1.

    Source: Cui et al., Class-Balanced Loss Based on Effective Number of Samples, CVPR 2019; with the rounding of
    Cao et al., Learning Imbalanced Datasets with Label-Distribution-Aware Margin Loss, NeurIPS 2019.

    Args:
        largest: size n_0 of the largest class.
        classes: number C of classes.
        imbalance: ratio of the largest class size to the smallest, at least 1.

    Returns:
        ``(C,)`` int64, descending.

    Raises:
        TypeError, ValueError: ``imbalance`` is out of range.

    Example:
        >>> long_tail_counts(100, 3, imbalance=100).tolist()
        [100, 10, 1]
    """
    check_positive("imbalance", imbalance)
    if imbalance < 1:
        raise ValueError(f"imbalance={imbalance!r}: must be at least 1")
    share = torch.arange(classes, dtype=torch.float64) / max(classes - 1, 1)
    # A size that is an integer by the formula must not become smaller by rounding.
    return (largest * float(imbalance) ** -share + 1e-9).long().clamp(min=1)


def recurring_order(targets: Tensor, seed: int, groups: int = 5, repeats: int = 2) -> Tensor:
    """Groups of classes come one after the other, and this sequence comes ``repeats`` times in all.

    The visits share a class's samples evenly, so that no sample comes twice; a class with fewer samples than
    visits is absent from some visits.

    Args:
        targets: labels ``(N,)`` int64.
        seed: seed of every random draw.
        groups: number of groups of classes, whose sizes differ by at most one class.
        repeats: number of visits of each group.

    Returns:
        ``(N,)`` int64, each index once.

    Raises:
        TypeError, ValueError: an option is out of range.

    Example:
        >>> targets = torch.tensor([7, 7, 3, 3])
        >>> targets[recurring_order(targets, seed=0, groups=2, repeats=2)].tolist()
        [7, 3, 7, 3]
    """
    check_positive_int("repeats", repeats)
    place, classes = _class_places(targets, seed)
    _check_groups(groups, classes)
    rank, sizes = _ranks_in_class(targets, seed)
    return _by_key(rank * repeats // sizes * groups + place * groups // classes, seed)


def _by_key(keys: Tensor, seed: int, purpose: str = "sample-order") -> Tensor:
    """Indices that sort by key in ascending order, shuffled where keys are equal."""
    shuffled = torch.randperm(len(keys), generator=generator(seed, purpose))
    return shuffled[keys[shuffled].argsort(stable=True)]


def _class_places(targets: Tensor, seed: int, purpose: str = "class-order") -> tuple[Tensor, int]:
    """The position of each sample's class in a random order of the classes, ``(N,)``, and the number of classes."""
    classes, row = targets.unique(return_inverse=True)
    return torch.randperm(len(classes), generator=generator(seed, purpose))[row], len(classes)


def _ranks_in_class(targets: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Each sample's rank in a random order of its class's samples, and the class's size, both ``(N,)``."""
    _, row, sizes = targets.unique(return_inverse=True, return_counts=True)
    rank = torch.empty_like(row)
    rank[_by_key(row, seed, "rank-in-class")] = torch.cat([torch.arange(size) for size in sizes.tolist()])
    return rank, sizes[row]


def _random_parts(count: int, parts: int, draw: torch.Generator) -> Tensor:
    """Cuts a row of ``count`` items at ``parts - 1`` random places; gives the part of each, ``(count,)`` ascending."""
    cuts = torch.randint(count + 1, (parts - 1,), generator=draw).sort().values
    return torch.bucketize(torch.arange(count), cuts, right=True)


def _check_groups(groups: int, classes: int) -> None:
    check_positive_int("groups", groups)
    if groups > classes:
        raise ValueError(f"groups={groups}: the data has {classes} classes, so at most {classes} groups")
