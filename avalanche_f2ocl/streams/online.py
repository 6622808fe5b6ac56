"""Experiences cut into mini-experiences of one mini-batch."""

from collections.abc import Iterable, Iterator

from avalanche.benchmarks import CLStream, DatasetExperience, OnlineCLExperience
from avalanche.benchmarks.scenarios.online import FixedSizeExperienceSplitter

from avalanche_f2ocl.arguments import check_positive_int


def online_stream(experiences: Iterable[DatasetExperience], batch_size: int = 10) -> CLStream:
    """Cuts experiences, in order, into mini-experiences of one mini-batch, for a strategy to train on online.

    It gives the same as Avalanche's ``split_online_stream(experiences, batch_size, shuffle=False)``. But where that
    keeps each mini-experience it has made (4 kB), this stream makes them again each time it is iterated.

    Args:
        experiences: experiences of a training stream.
        batch_size: samples in a mini-experience; the last one of an experience may have fewer.

    Raises:
        TypeError, ValueError: ``batch_size`` is no positive int.

    Example:
        >>> from avalanche_f2ocl import class_incremental_stream
        >>> stream = class_incremental_stream("digits", groups=5, train_per_class=6)
        >>> [len(e.dataset) for e in online_stream(stream.train_stream[:2])]
        [10, 2, 10, 2]
    """
    check_positive_int("batch_size", batch_size)
    name = getattr(experiences, "name", "train") + "_online"
    return CLStream(name, _MiniExperiences(experiences, batch_size))


class _MiniExperiences:
    """Can be iterated any number of times, so that Avalanche needs to keep nothing."""

    def __init__(self, experiences: Iterable[DatasetExperience], size: int) -> None:
        self.experiences, self.size = experiences, size

    def __iter__(self) -> Iterator[OnlineCLExperience]:
        for experience in self.experiences:
            yield from FixedSizeExperienceSplitter(experience, self.size, shuffle=False, seed=0)
