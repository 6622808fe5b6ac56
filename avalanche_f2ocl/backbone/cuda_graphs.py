"""Forward passes replayed as CUDA graphs: small mini-batches on a GPU wait for kernel launches, not for arithmetic."""

import warnings
from collections import Counter
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.backbone.graph_call import Function, GraphCall

MOST = 8
"""Largest number of graphs; each keeps the memory of one pass."""
AFTER = 3
"""Number of calls with the same shapes before they are captured: a rare size is not worth the capture."""


class CapturedCalls:
    """Calls functions of tensors, by replaying a CUDA graph if the same shapes and dtypes come again and again.

    Anything else is called directly: other devices, other shapes, autocast. Results belong to the caller, so later
    replays do not change them. Only the latest call of a graph can be differentiated.

    Args:
        required: whether a capture that fails raises; otherwise it warns, and those shapes are not captured again.
        device_type: type of device on which calls are captured.

    Example:
        >>> calls = CapturedCalls()
        >>> calls("double", lambda x: (2 * x,), torch.ones(2))  # on a CPU nothing is captured
        (tensor([2., 2.]),)
    """

    def __init__(self, required: bool = False, device_type: str = "cuda") -> None:
        self.required, self.device_type = required, device_type
        self.clear()

    def clear(self) -> None:
        """Drops all graphs; call it when tensors that a function closes over have moved."""
        self._seen: Counter[Hashable] = Counter()
        self._graphs: dict[Hashable, GraphCall | None] = {}

    def wipe(self) -> None:
        """Clears the values of the last calls, which graphs keep in memory; these can no longer be differentiated."""
        for graph in filter(None, self._graphs.values()):
            graph.wipe()

    def __getstate__(self) -> dict[str, Any]:
        # Graphs can be neither copied nor saved; a copy captures its own.
        return {"required": self.required, "device_type": self.device_type}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __call__(self, name: Hashable, function: Function, first: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        """The function's outputs.

        Args:
            name: identifies the function.
            function: a function of the tensors without side effects; other tensors that it reads must not move.
            first: a tensor without gradient.
            *others: tensors that may have a gradient.
        """
        tensors = (first, *others)
        if first.device.type != self.device_type or torch.is_autocast_enabled(self.device_type):
            return function(*tensors)
        key = (name, *((t.shape, t.dtype, t.device) for t in tensors))
        if key not in self._graphs:
            self._seen[key] += 1
            if self._seen[key] <= AFTER or len(self._graphs) >= MOST:
                return function(*tensors)
            self._graphs[key] = self._capture(function, tensors)
        return (self._graphs[key] or function)(*tensors)

    def _capture(self, function: Function, tensors: tuple[Tensor, ...]) -> GraphCall | None:
        try:
            # Capture on the tensors' device, and restore the current stream, since a failed capture leaves its own.
            with torch.cuda.stream(torch.cuda.current_stream(tensors[0].device)):
                return GraphCall(function, tensors)
        except RuntimeError as error:
            problem = f"a pass could not be captured as a CUDA graph: {error}"
            if self.required:
                raise RuntimeError(f"capture=True, but {problem}") from error
            warnings.warn(f"{problem}; it runs slower without", stacklevel=2)
        with suppress(RuntimeError):  # some versions raise it when a capture could not be ended
            torch.cuda.empty_cache()  # the error is gone by now, whose frames held tensors
        return None
