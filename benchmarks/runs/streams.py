"""The stream of a run, in groups of classes or without boundaries, tested on test images or on held-out ones."""

import argparse

import torch
from avalanche.benchmarks import CLScenario
from torch import Tensor

from avalanche_f2ocl import class_incremental_stream, datasets, domain_incremental_stream
from avalanche_f2ocl.datasets.domains import DomainFiles
from avalanche_f2ocl.datasets.from_files import Loading, load_listed
from avalanche_f2ocl.datasets.image_tensors import ImageTensors
from avalanche_f2ocl.options import Fit
from avalanche_f2ocl.streams import boundary_free as boundary_free_streams

BOUNDARY_FREE = {
    "si-blurry": boundary_free_streams.si_blurry_stream,
    "drifting": boundary_free_streams.drifting_stream,
    "long-tailed": boundary_free_streams.long_tailed_stream,
    "shuffled": boundary_free_streams.shuffled_stream,
    "recurring": boundary_free_streams.recurring_stream,
}
STREAMS = ("groups", "domains", "classes-of-domains", *BOUNDARY_FREE)


def make_stream(args: argparse.Namespace) -> CLScenario:
    """The Avalanche benchmark that the runner's arguments describe."""
    data, per_class = args.dataset, (args.train_per_class, args.test_per_class)
    if args.stream == "classes-of-domains":
        data, per_class = whole(DomainFiles(data), args.fit), (None, None)
        if args.held_out:
            data = held_out(data[0], args.train_per_class, args.held_out)
        return class_incremental_stream(data, args.groups, args.seed)
    if args.stream == "domains":
        if args.held_out:
            data, per_class = HeldOutDomains(data, args.train_per_class), (args.train_per_class, args.held_out)
        return domain_incremental_stream(data, None, args.seed, *per_class, fit=args.fit)
    if args.held_out:
        train = datasets.load(data, train_per_class=args.train_per_class + args.held_out, fit=args.fit, in_memory=True)
        data, per_class = held_out(train.train, args.train_per_class, args.held_out), (None, None)
    if args.stream == "groups":
        return class_incremental_stream(data, args.groups, args.seed, *per_class, fit=args.fit)
    train_per_class, test_per_class = per_class
    make = BOUNDARY_FREE[args.stream]
    per_class = {"train_per_class": train_per_class, "test_per_class": test_per_class}
    return make(data, seed=args.seed, fit=args.fit, **per_class)


def whole(files: DomainFiles, fit: Fit = "auto") -> tuple[ImageTensors, ImageTensors]:
    """All images of all domains, the training and the test part."""
    everything = {split: torch.arange(len(labels)) for split, labels in files.labels.items()}
    data = load_listed(files, everything, Loading(fit=fit, in_memory=True))
    return data.train, data.test


def kept_and_rest(labels: Tensor, per_class: int) -> tuple[Tensor, Tensor]:
    """Indices of ``per_class`` images of each of the ``labels (N,)``, and of all others."""
    kept = datasets.keep_per_class(labels, per_class, "held-out")
    rest = torch.ones(len(labels), dtype=torch.bool)
    rest[kept] = False
    return kept, rest.nonzero().squeeze(1)


class HeldOutDomains(DomainFiles):
    """Domains with training images alone: ``per_class`` of each class and domain, and all others as test images."""

    def __init__(self, dataset: str, per_class: int) -> None:
        super().__init__(dataset)
        parts = dict(zip(("train", "test"), kept_and_rest(self.groups("train"), per_class), strict=True))
        self.images = {split: self.chosen("train", part) for split, part in parts.items()}
        for by_split in (self.domains, self.labels):
            by_split |= {split: by_split["train"][part] for split, part in parts.items()}


def held_out(train: ImageTensors, per_class: int, count: int) -> tuple[ImageTensors, ImageTensors]:
    """``per_class`` training images of each class, and ``count`` other images of it instead of the test images."""
    labels = torch.tensor(train.targets)
    chosen, others = kept_and_rest(labels, per_class)
    others = others[datasets.keep_per_class(labels[others], count, "held-out")]
    return tuple(ImageTensors(train.images[part], labels[part]) for part in (chosen, others))
