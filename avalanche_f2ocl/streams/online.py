"""Experiences cut into mini-experiences of one mini-batch."""

from collections.abc import Iterable, Iterator

from avalanche.benchmarks import CLStream, DatasetExperience, OnlineCLExperience
from avalanche.benchmarks.scenarios.online import FixedSizeExperienceSplitter

from avalanche_f2ocl.arguments import check_positive_int


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
        >>> from avalanche_f2ocl import class_incremental_stream
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
