"""Domain-incremental streams as Avalanche benchmarks."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import torch
from avalanche.benchmarks import CLScenario

from avalanche_f2ocl.datasets.by_class import SPLITS
from avalanche_f2ocl.datasets.domains import DomainFiles
from avalanche_f2ocl.datasets.from_files import Loading, load_listed
from avalanche_f2ocl.datasets.loading import keep_per_class, per_class_counts
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.streams.class_incremental import make_benchmark


def domain_incremental_stream(
    dataset: str | PathLike | Mapping[str, str | PathLike] | DomainFiles,
    domains: Sequence[str] | None = None,
    seed: int = 0,
    train_per_class: int | None = None,
    test_per_class: int | None = None,
    **loading: Any,
) -> CLScenario:
    """A stream of domains, such as photographs, paintings and sketches, one after the other; the classes are the same.

    Here the groups of the metrics are domains: A_n is the mean accuracy over domains, F_n the forgetting of domains,
    and ``T[i, j]`` the accuracy on domain j after training on domain i.

    Args:
        dataset: folder, zip or tar with ``<domain>/train/<class>/*`` and ``<domain>/test/<class>/*``; or a dict of
            folders, zips and tars by domain; or files that have been listed.
        domains: names of domains in order, all or some; by default all, in an order drawn from the seed.
        seed: seed of this order, and of the order of the training samples within a domain.
        train_per_class, test_per_class: number of images kept of each class in each domain, the same images for every
            seed.
        **loading: ``image_size``, ``fit``, ``in_memory``, ``workers``, see
            :class:`avalanche_f2ocl.datasets.from_files.Loading`.

    Returns:
        A benchmark with one experience for each domain in ``train_stream`` and ``test_stream``, without task labels. It
        also has ``domain_names`` (by experience), ``class_names``, ``class_order`` (by first appearance) and ``seed``.

    Raises:
        TypeError, ValueError: an option is not allowed, or names of domains are unknown or repeated.
        FileNotFoundError: there is no such file or folder.

    Example:
        >>> stream = domain_incremental_stream("pacs.zip", seed=1)  # doctest: +SKIP
        >>> stream.domain_names  # doctest: +SKIP
        ['sketch', 'photo', 'cartoon', 'art_painting']
    """
    options, per_class = Loading(**loading), per_class_counts(train_per_class, test_per_class)
    files = dataset if isinstance(dataset, DomainFiles) else DomainFiles(dataset)
    names = _in_order(files.domain_names, domains, seed)
    chosen = {split: keep_per_class(files.groups(split), per_class[split], split) for split in SPLITS}
    data = load_listed(files, chosen, options)
    parts = {
        split: [
            (files.domains[split][chosen[split]] == files.domain_names.index(name)).nonzero().squeeze(1)
            for name in names
        ]
        for split in SPLITS
    }
    train = [
        part[torch.randperm(len(part), generator=generator(seed, "sample-order", i))]
        for i, part in enumerate(parts["train"])
    ]
    labels = torch.tensor(data.train.targets)[torch.cat(train)]
    benchmark = make_benchmark(data, train, parts["test"], list(dict.fromkeys(labels.tolist())), seed)
    benchmark.domain_names = names
    return benchmark


def _in_order(there: list[str], asked: Sequence[str] | None, seed: int) -> list[str]:
    if asked is None:
        return [there[i] for i in torch.randperm(len(there), generator=generator(seed, "domain-order")).tolist()]
    names = list(asked)
    if isinstance(asked, str) or not names or len(set(names)) < len(names) or not set(names) <= set(there):
        raise ValueError(f"domains={asked!r}: allowed are {', '.join(there)}, each once")
    return names
