"""One function of tensors, recorded as a CUDA graph."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Function = Callable[..., tuple[Tensor, ...]]

WARM_UPS = 3
"""Number of calls before the recording, as in PyTorch's own, so that libraries are set up by then."""


class GraphCall:
    """Calls a function of tensors by replaying the kernels that it launched once.

    It is like :func:`torch.cuda.make_graphed_callables`, which in PyTorch 2.4 needs a gradient, and up to 2.11 records
    on a stream of the device that recorded first and fails if another thread, such as one that pins memory, calls CUDA
    at the same time.

    Every call uses the same memory: results are copies, and only the latest call can be differentiated.

    Args:
        function: a function of the tensors without side effects; other tensors that it reads must not move.
        tensors: sample tensors on the current device. The first has no gradient; the others may have one, and the same
            graph serves calls with and without gradients.

    Raises:
        RuntimeError: the function cannot be recorded; for lack of memory, the subclass
            :class:`torch.cuda.OutOfMemoryError`.
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
            if others:  # avoids warnings about what is recorded
                self._backward, self.grads = self._record(self._gradients, outputs, self.output_grads)
        self.outputs = tuple(output.detach() for output in outputs)
        self.calls = 0

    def __call__(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The function's outputs."""
        return _Replay.apply(self, *tensors)

    @torch.no_grad()
    def wipe(self) -> None:
        """Clears the last call's values."""
        self.calls += 1  # it can no longer be differentiated
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
        """The gradients of those inputs that may have one."""
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
                "a later forward pass of the same shapes has overwritten the activations that this gradient needs: "
                "take gradients before the next pass, or set capture=False"
            )
        return None, *ctx.graph_call.replay_backward(output_grads)
