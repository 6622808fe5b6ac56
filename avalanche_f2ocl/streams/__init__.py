"""Avalanche benchmarks: groups of classes, domains, streams without boundaries, mini-experiences of one mini-batch."""

from avalanche_f2ocl.streams.boundary_free import (
    drifting_stream,
    long_tailed_stream,
    recurring_stream,
    shuffled_stream,
    si_blurry_stream,
)
from avalanche_f2ocl.streams.class_incremental import class_incremental_stream
from avalanche_f2ocl.streams.domain_incremental import domain_incremental_stream
from avalanche_f2ocl.streams.online import online_stream

__all__ = [
    "class_incremental_stream",
    "domain_incremental_stream",
    "drifting_stream",
    "long_tailed_stream",
    "online_stream",
    "recurring_stream",
    "shuffled_stream",
    "si_blurry_stream",
]
