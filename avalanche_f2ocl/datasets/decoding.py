"""Images decoded ahead of their use, by processes of their own."""

import os
import signal
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from avalanche_f2ocl.arguments import check_int
from avalanche_f2ocl.datasets.reading import UnreadableImage
from avalanche_f2ocl.datasets.source import Source
from avalanche_f2ocl.image_fit import ImageFit

AHEAD = 64
"""Images that each process decodes ahead."""

_CHUNK = 8  # images sent at a time: each sending takes some 0.2 ms
TIMEOUT = 120
"""Seconds after which a process that sends nothing counts as stuck."""


class _Decoder(Dataset):
    def __init__(self, files: Sequence[tuple[Source, str]], fit: ImageFit | None) -> None:
        self.files, self.fit = files, fit

    def __getitems__(self, indices: list[int]) -> list[Tensor | UnreadableImage]:
        return [read(*self.files[index], self.fit) for index in indices]


def decode(
    files: Sequence[tuple[Source, str]],
    fit: ImageFit | None,
    order: Sequence[int] | None = None,
    workers: int | None = None,
    timeout: float | None = None,
) -> Iterator[Tensor | UnreadableImage]:
    """Reads images in their order, while the caller does something else with those before.

    Args:
        files: sources and names in them.
        fit: see :class:`avalanche_f2ocl.image_fit.ImageFit`; None keeps each image's size.
        order: indices into ``files``; default all of them as they come.
        workers: processes that decode; 0 for none but the caller's, None for :func:`default_workers`.
        timeout: seconds after which a process that sends nothing counts as stuck; default :data:`TIMEOUT`.

    Yields:
        ``(3, H, W)`` uint8 each; in place of an image that cannot be read, the error that names it.

    Raises:
        RuntimeError: a process died, or is stuck; the message names the files it may have had.
        TypeError, ValueError: ``workers`` is no int of at least 0.

    Example:
        >>> list(decode([], None))
        []
    """
    order = range(len(files)) if order is None else order
    workers = default_workers() if workers is None else check_workers(workers)
    if workers == 0 or len(order) <= _CHUNK:
        yield from (read(*files[index], fit) for index in order)
        return
    loader: DataLoader[Any] = DataLoader(
        _Decoder(files, fit),
        batch_size=_CHUNK,
        sampler=order,
        num_workers=workers,
        prefetch_factor=AHEAD // _CHUNK,
        collate_fn=_as_they_are,
        worker_init_fn=_leave_signals,
        timeout=TIMEOUT if timeout is None else timeout,
        generator=torch.Generator(),  # or it would draw from the global one
    )
    done, chunks = 0, iter(loader)
    while True:
        try:
            chunk = next(chunks, None)
        except RuntimeError as error:
            doubtful = [files[index][1] for index in islice(order, done, done + _CHUNK)]
            raise RuntimeError(
                f"decoding stopped: {error}. It may have been at {', '.join(doubtful)}; "
                "with workers=0 there are no processes that can fail"
            ) from error
        if chunk is None:
            return
        yield from chunk
        done += len(chunk)


def read(source: Source, name: str, fit: ImageFit | None) -> Tensor | UnreadableImage:
    """An image, or why there is none."""
    try:
        return source.pixels(name, fit)
    except UnreadableImage as error:
        return error


def default_workers() -> int:
    """A process for each core, four at most: one decodes some 150 photographs of 500 pixels a second."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(4, cores)


def check_workers(workers: int) -> int:
    """Raises unless it is an int of at least 0."""
    check_int("workers", workers)
    if workers < 0:
        raise ValueError(f"workers={workers!r}: must be at least 0")
    return workers


def _leave_signals(worker: int) -> None:
    """A terminal sends its signals to all processes; it is for the caller to stop these."""
    for name in ("SIGINT", "SIGHUP"):
        if number := getattr(signal, name, None):
            signal.signal(number, signal.SIG_IGN)


def _as_they_are(items: list) -> list:
    return items
