"""Stands in for CUDA on the CPU: devices, streams, graphs that record and replay, threads, and memory that runs out."""

import threading
from contextlib import contextmanager
from itertools import count

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

PATCHED = (
    "CUDAGraph", "Stream", "current_device", "current_stream", "device", "empty_cache", "graph", "graph_pool_handle",
    "stream",
)  # fmt: skip
"""Of torch.cuda."""


class OnDevice(torch.Tensor):
    """A tensor that says it is on ``cuda:1``; what is computed from it does not."""

    device = torch.device("cuda", 1)
    # Before torch 2.5, a result that a Recorder has seen could not be made one of these.
    __torch_function__ = torch._C._disabled_torch_function_impl


def number(device) -> int:
    """Of a device; a CPU stands for the first."""
    device = torch.device(device)
    return torch.cuda.current_device() if device.index is None and device.type == "cuda" else device.index or 0


class Recorder(TorchDispatchMode):
    """Notes what is launched on a device while its current stream is the one that is recorded."""

    def __init__(self, cuda, stream):
        super().__init__()
        self.cuda, self.stream, self.launched = cuda, stream, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        results = func(*args, **(kwargs or {}))
        if self.cuda.current_stream(f"cuda:{self.cuda.tensors_on}") is self.stream:
            self.launched.append((func, args, kwargs or {}, results))
        return results


class Graph:
    """Launches again what was recorded, in the same memory."""

    def __init__(self):
        self.launched = None

    @torch.no_grad()
    def replay(self):
        for func, args, kwargs, results in self.launched:
            again = func(*args, **kwargs)
            for own, new in zip(tree_leaves(results), tree_leaves(again), strict=True):
                if isinstance(own, torch.Tensor) and own.data_ptr() != new.data_ptr():
                    own.copy_(new)


class Stream:
    """A queue of a device."""

    numbers = count()

    def __init__(self, device):
        self.device, self.number = device, next(self.numbers)

    def wait_stream(self, other):
        assert isinstance(other, Stream)


class Cuda:
    """What replaces the names in ``PATCHED``.

    Attributes:
        tensors_on: number of the device that they are on.
        graphs: recorded.
        emptied: times that the cache was.
        on_emptied: called then.
    """

    CUDAGraph = Graph

    def __init__(self):
        self.number, self.streams, self.tensors_on = 0, {}, 0
        self.graphs, self.emptied, self.on_emptied = [], 0, lambda: None
        self._recording = None

    def Stream(self):
        return Stream(self.number)

    def current_device(self):
        return self.number

    def current_stream(self, device=None):
        where = self.number if device is None else number(device)
        return self.streams.setdefault(where, Stream(where))

    @contextmanager
    def device(self, device):
        before, self.number = self.number, number(device)
        try:
            yield
        finally:
            self.number = before

    @contextmanager
    def stream(self, stream):
        before = self.number, self.current_stream(), self.current_stream(f"cuda:{stream.device}")
        self.number, self.streams[stream.device] = stream.device, stream
        try:
            yield
        finally:
            self.streams[stream.device] = before[2]
            self.number, self.streams[before[0]] = before[0], before[1]

    def graph_pool_handle(self):
        return object()

    def empty_cache(self):
        self.emptied += 1
        self.on_emptied()

    @contextmanager
    def graph(self, graph, pool=None, stream=None, capture_error_mode="global"):
        """As torch's in all versions: where the recording cannot be ended, the stream stays current."""
        context = self.stream(stream)
        context.__enter__()
        self._recording, self._broken = (capture_error_mode, threading.get_ident()), False
        recorder = Recorder(self, stream)
        try:
            with recorder:
                yield
        finally:
            self._recording = None
            if self._broken:
                self._kept = context  # else it is left as garbage
                raise RuntimeError("operation failed due to a previous error during capture")
            context.__exit__(None, None, None)
        graph.launched, graph.pool = recorder.launched, pool
        self.graphs.append(graph)

    def unsafe_call(self):
        """What a thread that pins memory calls; it breaks a recording that forbids it."""
        if self._recording is not None:
            mode, thread = self._recording
            if mode == "global" or thread == threading.get_ident():
                self._broken = True
                raise RuntimeError("operation not permitted when stream is capturing")


def stand_in(monkeypatch) -> Cuda:
    """Puts it in the place of torch's."""
    cuda = Cuda()
    for name in PATCHED:
        monkeypatch.setattr(torch.cuda, name, getattr(cuda, name))
    return cuda


def captured(cuda):
    """Functions: each has a pool of memory."""
    return len({graph.pool for graph in cuda.graphs})


def double(x, y):
    return (2 * x + y,)
