"""Reading a flag from a device without waiting for it."""

from collections.abc import Callable

import torch
from torch import Tensor

LATE = {"cuda"}
"""Types of device that work asynchronously to the host."""


class LateAnswer:
    """Whether a flag on a device is set; on CUDA, whether it was set at the previous call, and False at first.

    The host waits only until the previous flag has arrived, so it can run ahead by the work between two calls. The same
    calls have the same answers in every run.

    Example:
        >>> LateAnswer()(torch.tensor(True))  # a CPU answers at once
        True
    """

    def __init__(self) -> None:
        self._last: Callable[[], bool] | None = None

    def __call__(self, flag: Tensor) -> bool:
        """Reads ``flag``, a bool scalar."""
        if flag.device.type not in LATE:
            return bool(flag)
        last, self._last = self._last, ask(flag)
        return last is not None and last()

    def __getstate__(self) -> dict:
        return {"_last": None}  # a pending answer can be neither copied nor saved


def ask(flag: Tensor) -> Callable[[], bool]:
    """Begins to fetch a scalar from a CUDA device; returns a function that waits for it to arrive."""
    copy, arrived = flag.to("cpu", non_blocking=True), torch.cuda.Event()
    arrived.record(torch.cuda.current_stream(flag.device))

    def answer() -> bool:
        arrived.synchronize()
        return bool(copy)

    return answer
