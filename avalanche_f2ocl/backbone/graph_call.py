"""One function of tensors, recorded as a CUDA graph."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Function = Callable[..., tuple[Tensor, ...]]

WARM_UPS = 3
"""Calls before the recording, as PyTorch's own: libraries then have what they set up at their first calls."""


class GraphCall:
    """Calls a function of tensors by replaying what it once launched.

    As :func:`torch.cuda.make_graphed_callables`, which in PyTorch 2.4 needs a gradient, and up to 2.11 records on a
    stream of the device that recorded first and fails when another thread, as one that pins memory, calls CUDA
    meanwhile.

    Every call has the same memory: what is returned is a copy, and a gradient can be taken of the latest call only.

    Args:
        function: of the tensors, without side effects; what else it reads must stay where it is.
        tensors: a sample, on the current device. The first has no gradient; the others may have, and the same graph
            serves calls with and without.

    Raises:
        RuntimeError: it cannot be recorded; :class:`torch.cuda.OutOfMemoryError`, a subclass, for lack of memory.
    """

    def __init__(self, function: Function, tensors: tuple[Tensor, ...]) -> None:
        first, *others = (t.detach().clone() for t in tensors)
        self.inputs = (first, *(t.requires_grad_(t.is_floating_point()) for t in others))
        self.grads: tuple[Tensor, ...] = ()
        self._stream, self._pool = torch.cuda.Stream(), torch.cuda.graph_pool_handle()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.enable_grad():
            with torch.cuda.stream(self._stream):
                for _ in range(WARM_UPS):
                    outputs = function(*self.inputs)
                    self._gradients(outputs, tuple(map(torch.empty_like, outputs)))
            self._forward, outputs = self._record(function, *self.inputs)
            self.output_grads = tuple(map(torch.empty_like, outputs))
            if others:  # nothing recorded is warned of
                self._backward, self.grads = self._record(self._gradients, outputs, self.output_grads)
        self.outputs = tuple(output.detach() for output in outputs)
        self.calls = 0

    def __call__(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The function's outputs."""
        return _Replay.apply(self, *tensors)

    @torch.no_grad()
    def wipe(self) -> None:
        """Forgets the last call's values."""
        self.calls += 1  # its gradient is lost
        for tensor in (*self.inputs, *self.outputs, *self.output_grads, *self.grads):
            tensor.zero_()

    def replay(self, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        self.calls += 1
        for own, new in zip(self.inputs, tensors, strict=True):
            own.copy_(new)
        self._forward.replay()
        return tuple(output.clone() for output in self.outputs)

    def replay_backward(self, output_grads: tuple[Tensor, ...]) -> list[Tensor | None]:
        for own, new in zip(self.output_grads, output_grads, strict=True):
            own.copy_(new)
        self._backward.replay()
        grads = iter(self.grads)
        return [next(grads).clone() if own.requires_grad else None for own in self.inputs]

    def _record(self, function: Callable, *args: Any) -> tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...]]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
            results = function(*args)
        return graph, results

    def _gradients(self, outputs: tuple[Tensor, ...], grads: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Of the inputs that may have one."""
        inputs = [own for own in self.inputs if own.requires_grad]
        return torch.autograd.grad(outputs, inputs, grads) if inputs else ()


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: GraphCall, *tensors: Tensor) -> tuple[Tensor, ...]:
        outputs = call.replay(tensors)
        ctx.graph_call, ctx.number = call, call.calls
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *output_grads: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.number != ctx.graph_call.calls:
            raise RuntimeError(
                "a gradient of a forward pass whose activations a later one of the same shapes has overwritten: "
                "take gradients before the next pass, or set capture=False"
            )
        return None, *ctx.graph_call.replay_backward(output_grads)
