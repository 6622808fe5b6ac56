"""Several processes under torchrun: their numbers, and what they exchange."""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch import distributed as dist

LOST = (
    "the other processes could not be reached: one was lost or hangs. Start again with torchrun; "
    "strategy.resume(path) continues from the last checkpoint"
)


def start(timeout: timedelta = timedelta(minutes=10)) -> bool:
    """Joins the processes that torchrun started.

    If each process has a CUDA device of its own, they exchange tensors on these devices by NCCL. They use gloo for
    tensors on the CPU, and for all tensors if processes share a device, which NCCL does not allow.

    Call this function before strategies and models are made. They then share the work, see docs/scaling.md. Without
    torchrun the function does nothing.

    Args:
        timeout: for how long a process waits for another before it gives up.

    Returns:
        Whether this process is the first, which prints and saves.

    Example:
        >>> start()
        True
    """
    if "LOCAL_RANK" in os.environ and not dist.is_initialized():
        own, devices = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
        if devices:
            torch.cuda.set_device(own % devices)
        if devices >= int(os.environ.get("LOCAL_WORLD_SIZE", "1")) and dist.is_nccl_available():
            device = torch.device("cuda", own)
            dist.init_process_group("cpu:gloo,cuda:nccl", timeout=timeout, device_id=device)
        else:
            dist.init_process_group("gloo", timeout=timeout)
    return is_first()


def world_size() -> int:
    """Number of processes that share the work; 1 without torchrun.

    Example:
        >>> world_size()
        1
    """
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """This process's number, from 0.

    Example:
        >>> rank()
        0
    """
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def is_first() -> bool:
    """Whether this process prints and saves, as the first does.

    Example:
        >>> is_first()
        True
    """
    return rank() == 0


class Share(NamedTuple):
    """A process's part of a mini-batch, in order; sizes differ by one at most and may be 0.

    Attributes:
        total: samples of the mini-batch.
        rank, ranks: number of the process, and how many processes there are.

    Example:
        >>> [Share(5, rank, 2).of(torch.arange(5)).tolist() for rank in range(2)]
        [[0, 1], [2, 3, 4]]
    """

    total: int
    rank: int
    ranks: int

    @property
    def sizes(self) -> list[int]:
        """Number of samples in each process's share."""
        cuts = [self.total * r // self.ranks for r in range(self.ranks + 1)]
        return [stop - start for start, stop in zip(cuts, cuts[1:], strict=False)]

    @property
    def size(self) -> int:
        return self.sizes[self.rank]

    def of(self, rows: Tensor) -> Tensor:
        """This process's rows ``(n, ...)`` of ``(total, ...)``; if it has none, one row as a placeholder."""
        start = min(self.total * self.rank // self.ranks, self.total - 1)
        return rows[start : start + max(1, self.size)]


def own_share(total: int) -> Share:
    """This process's share of a mini-batch of ``total`` samples.

    Example:
        >>> own_share(5)
        Share(total=5, rank=0, ranks=1)
    """
    return Share(total, rank(), world_size())


def gather_rows(rows: Tensor, share: Share) -> Tensor:
    """All processes' rows in order, ``(total, ...)``; gradients flow to this process's own.

    Args:
        rows: this process's rows ``(max(1, n), ...)``, as :meth:`Share.of` gives them.
        share: this process's share.

    Raises:
        RuntimeError: another process was lost.
    """
    sizes, own = share.sizes, rows[: share.size]
    padded = rows.new_zeros(max(sizes), *rows.shape[1:])
    padded[: share.size] = own.detach()
    parts = [torch.empty_like(padded) for _ in sizes]
    _exchange(dist.all_gather, parts, padded)
    parts = [part[:size] for part, size in zip(parts, sizes, strict=True)]
    parts[share.rank] = own
    return torch.cat(parts)


class _SumOfGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        total = grads[0].clone(memory_format=torch.contiguous_format)
        _exchange(dist.all_reduce, total)
        return total


def sum_gradients(values: Tensor) -> Tensor:
    """Returns the same values; their gradient becomes the sum of all processes' gradients.

    Raises:
        RuntimeError: in the backward pass, another process was lost.
    """
    return _SumOfGradients.apply(values)


def all_equal(value: Any) -> bool:
    """Whether all processes have the same value, which must be picklable."""
    values = [None] * world_size()
    _exchange(dist.all_gather_object, values, value)
    return all(other == value for other in values)


def wait_for_all() -> None:
    """Returns when all processes have called it, so that files written before by the first are there for the others."""
    if world_size() > 1:
        _exchange(dist.barrier)


class OutOfStep(RuntimeError):
    """The processes do not go through the same stream."""


def agree(labels: Tensor | None) -> None:
    """Compares the mini-batch among all processes, so that all learn it or none does; all must call it.

    Args:
        labels: ``(B,)`` int64, the labels of the mini-batch; None if this process cannot use the mini-batch.

    Raises:
        ValueError: another process cannot use the mini-batch.
        OutOfStep: another process has other labels, for example because it shuffles by another seed.
        RuntimeError: another process was lost. Gloo reports this here; NCCL works asynchronously, so that only its
            watchdog would end the process.
    """
    if world_size() == 1:
        return
    place = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
    own = [0, 0] if labels is None else [1, hash(tuple(labels.tolist()))]
    sent = torch.tensor(own, device=place)
    received = [torch.empty_like(sent) for _ in range(world_size())]
    _exchange(dist.all_gather, received, sent)
    usable, hashes = torch.stack(received).T.tolist()
    if not all(usable):
        raise ValueError("a process cannot use its copy of the mini-batch: none learns it")
    if len(set(hashes)) > 1:
        raise OutOfStep(
            "the processes have different mini-batches: give them the same stream, and their strategies the same seed"
        )


def _exchange(function: Callable, *args: Any) -> None:
    try:
        function(*args)
    except RuntimeError as error:
        raise RuntimeError(LOST) from error
