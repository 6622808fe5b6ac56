"""The parts, the most valuable first, and how much time each gets. It uses only the standard library."""

from typing import NamedTuple


class Part(NamedTuple):
    """One part.

    Attributes:
        minutes: its share of twenty minutes.
        expected: minutes that it should take on an H200; estimated by arithmetic, not yet measured.
        what: what it measures.
    """

    minutes: float
    expected: float
    what: str


PARTS = {
    "marked": Part(4.0, 2.0, "the tests marked gpu"),
    "parity": Part(1.5, 0.7, "accuracy and answers on digits, CUDA against the CPU, in float32 and bfloat16"),
    "speed": Part(5.0, 3.0, "milliseconds of a ViT-B/16's mini-batch, eager to captured, and what limits them"),
    "protocol": Part(6.0, 4.0, "CIFAR-100 whole on a ViT-Ti at 224 px: accuracy and seconds"),
    "step": Part(1.5, 0.7, "one step by parts and kernels, and where the host waits"),
    "processes": Part(2.0, 1.5, "two processes on one device, against one process"),
}
MINUTES = sum(part.minutes for part in PARTS.values())


def limits(names: list[str], minutes: float) -> dict[str, float]:
    """Seconds of each part if no earlier part leaves time.

    Example:
        >>> limits(["parity", "step"], 1.0)
        {'parity': 30.0, 'step': 30.0}
    """
    whole = sum(PARTS[name].minutes for name in names)
    return {name: 60 * minutes * PARTS[name].minutes / whole for name in names}


def limit(name: str, names: list[str], minutes: float, gone: float) -> float:
    """Seconds of a part after ``gone`` seconds: the time left, less the shares of the following parts.

    Example:
        >>> limit("step", ["parity", "step"], 1.0, gone=10.0)
        50.0
    """
    shares = limits(names, minutes)
    return 60 * minutes - gone - sum(shares[later] for later in names[names.index(name) + 1 :])
