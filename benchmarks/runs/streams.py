"""The stream of a run: groups of classes or one without boundaries, tested on test images or on held-out ones."""

import argparse

import torch
from avalanche.benchmarks import CLScenario

from avalanche_f2ocl import class_incremental_stream, datasets, domain_incremental_stream
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
STREAMS = ("groups", "domains", *BOUNDARY_FREE)


def make_stream(args: argparse.Namespace) -> CLScenario:
    """The Avalanche benchmark that the runner's arguments describe."""
    data, per_class = args.dataset, (args.train_per_class, args.test_per_class)
    if args.held_out:
        data, per_class = held_out(args.dataset, args.train_per_class, args.held_out, args.fit), (None, None)
    if args.stream == "groups":
        return class_incremental_stream(data, args.groups, args.seed, *per_class, fit=args.fit)
    if args.stream == "domains":
        return domain_incremental_stream(data, None, args.seed, *per_class, fit=args.fit)
    train_per_class, test_per_class = per_class
    make = BOUNDARY_FREE[args.stream]
    per_class = {"train_per_class": train_per_class, "test_per_class": test_per_class}
    return make(data, seed=args.seed, fit=args.fit, **per_class)


def held_out(dataset: str, train_per_class: int, count: int, fit: Fit = "auto") -> tuple[ImageTensors, ImageTensors]:
    """The training images of ``train_per_class``, and ``count`` others of each class that stand for the test images."""
    data = datasets.load(dataset, train_per_class=train_per_class + count, fit=fit, in_memory=True).train
    labels = torch.tensor(data.targets)
    chosen = datasets.keep_per_class(labels, train_per_class, "held-out")
    others = torch.ones(len(labels), dtype=torch.bool)
    others[chosen] = False
    parts = (chosen, others.nonzero().squeeze(1))
    return tuple(ImageTensors(data.images[part], labels[part]) for part in parts)
