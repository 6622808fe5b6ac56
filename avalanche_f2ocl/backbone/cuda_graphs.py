"""Forward passes replayed as CUDA graphs: small mini-batches on a GPU wait for kernel launches, not for arithmetic."""

import warnings
from collections import Counter
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

Function = Callable[..., tuple[Tensor, ...]]

MOST = 8
"""Graphs at most; each keeps the memory of one pass."""
AFTER = 3
"""Calls of the same shapes that come before theirs is captured: a rare size is not worth the capture."""


class CapturedCalls:
    """Calls functions of tensors; where the same shapes and dtypes come again and again, by replaying a CUDA graph.

    Anything else runs as it is: other devices, other shapes, autocast. What is returned is the caller's own, also after
    later replays. A gradient can be taken of the latest call of a graph only.

    Args:
        required: whether a capture that fails raises; otherwise it warns once, and those shapes stay as they are.
        device_type: whose tensors are captured.

    Example:
        >>> calls = CapturedCalls()
        >>> calls("double", lambda x: (2 * x,), torch.ones(2))  # on a CPU nothing is captured
        (tensor([2., 2.]),)
    """

    def __init__(self, required: bool = False, device_type: str = "cuda") -> None:
        self.required, self.device_type = required, device_type
        self.clear()

    def clear(self) -> None:
        """Forgets all graphs; to be called when tensors that a function closes over have moved."""
        self._seen: Counter[Hashable] = Counter()
        self._graphs: dict[Hashable, Function | None] = {}
        self._replays: Counter[Hashable] = Counter()

    def __getstate__(self) -> dict[str, Any]:
        # Graphs can neither be copied nor saved; a copy captures its own.
        return {"required": self.required, "device_type": self.device_type}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __call__(self, name: Hashable, function: Function, first: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        """The function's outputs.

        Args:
            name: the same for the same function.
            function: of the tensors, without side effects; what else it reads stays where it is.
            first: has no gradient.
            *others: may have.
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
        graph = self._graphs[key]
        if graph is None:
            return function(*tensors)
        self._replays[key] += 1
        outputs = tuple(output.clone() for output in graph(*tensors))
        for output in outputs:
            if output.requires_grad:
                output.register_hook(partial(self._check_latest, key, self._replays[key]))
        return outputs

    def _capture(self, function: Function, tensors: tuple[Tensor, ...]) -> Function | None:
        first, *others = (t.detach().clone() for t in tensors)
        # With gradients, whether or not this call wants them: the same graph then serves both kinds of call.
        sample = (first, *(t.requires_grad_(t.is_floating_point()) for t in others))
        try:
            with torch.enable_grad():
                return cast("Function", torch.cuda.make_graphed_callables(function, sample))
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            if self.required:
                raise
            warnings.warn(f"a pass could not be captured as a CUDA graph, so it runs slower: {error}", stacklevel=2)
            return None

    def _check_latest(self, key: Hashable, replay: int, grad: Tensor) -> None:
        if self._replays[key] != replay:
            raise RuntimeError(
                "a gradient of a forward pass whose activations a later one of the same shapes has overwritten: "
                "take gradients before the next pass, or set capture=False"
            )
