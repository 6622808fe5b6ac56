"""Times that can be compared on a noisy machine: medians over turns in one process."""

import time
from collections.abc import Callable
from statistics import median

import torch


def seconds(function: Callable[[], object], device: torch.device) -> float:
    """How long a call takes, including the device's work."""
    _wait(device)
    start = time.perf_counter()
    function()
    _wait(device)
    return time.perf_counter() - start


def by_turns(functions: dict[str, Callable[[], object]], device: torch.device, repeats: int) -> dict[str, list[float]]:
    """Seconds of each function, called in turn ``repeats`` times, after a call of each that is not timed."""
    for function in functions.values():
        function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            times[name].append(seconds(function, device))
    return times


def ratio(times: dict[str, list[float]], name: str, other: str) -> float:
    """Median over the turns of one function's time by another's."""
    return median(one / two for one, two in zip(times[name], times[other], strict=True))


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
