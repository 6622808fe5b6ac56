"""Asking a device without waiting for it."""

from collections.abc import Callable

import torch
from torch import Tensor

LATE = {"cuda"}
"""Kinds of device that work behind the host's back."""


class LateAnswer:
    """Whether a flag on a device is set; on CUDA, whether it was when asked the last time, at first False.

    That the host waits until its last question has been answered, and no longer, lets it run ahead by what lies between
    two questions. The same questions have the same answers in every run.

    Example:
        >>> LateAnswer()(torch.tensor(True))  # a CPU answers at once
        True
    """

    def __init__(self) -> None:
        self._last: Callable[[], bool] | None = None

    def __call__(self, flag: Tensor) -> bool:
        """Asks for the bool ``flag``, a scalar."""
        if flag.device.type not in LATE:
            return bool(flag)
        last, self._last = self._last, ask(flag)
        return last is not None and last()

    def __getstate__(self) -> dict:
        return {"_last": None}  # an answer on its way can neither be copied nor saved


def ask(flag: Tensor) -> Callable[[], bool]:
    """Begins to fetch a scalar from a CUDA device; gives what waits for it to arrive."""
    copy, arrived = flag.to("cpu", non_blocking=True), torch.cuda.Event()
    arrived.record(torch.cuda.current_stream(flag.device))

    def answer() -> bool:
        arrived.synchronize()
        return bool(copy)

    return answer
