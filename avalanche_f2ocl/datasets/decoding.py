"""Images decoded ahead of their use, by other processes."""

import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from avalanche_f2ocl.arguments import check_int
from avalanche_f2ocl.datasets.reading import UnreadableImage
from avalanche_f2ocl.datasets.source import Source
from avalanche_f2ocl.image_fit import ImageFit

AHEAD = 64
"""Number of images that each process decodes ahead."""

_CHUNK = 8  # images sent at a time, since each sending takes some 0.2 ms
_FORKS = sys.platform == "linux"
TIMEOUT = 120
"""Seconds after which a process that sends nothing counts as stuck."""


class _Decoder(Dataset):
    """Puts images into a buffer ``(slots, 3, H, W)`` that processes share; an image of another size is sent.

    A tensor would have to be fetched from its process, which may be stuck or dead by then, so arrays are sent.
    """

    def __init__(self, files: Sequence[tuple[Source, str]], fit: ImageFit | None, buffer: Tensor) -> None:
        self.files, self.fit, self.buffer = files, fit, buffer

    def __getitems__(self, places: list[tuple[int, int]]) -> list[np.ndarray | UnreadableImage | None]:
        return [self._put(slot, read(*self.files[index], self.fit)) for slot, index in places]

    def _put(self, slot: int, image: Tensor | UnreadableImage) -> np.ndarray | UnreadableImage | None:
        if not isinstance(image, Tensor):
            return image
        if image.shape != self.buffer.shape[1:]:
            return image.numpy()
        self.buffer[slot] = image
        return None


class _Chunks:
    """Slots and indices ``[(slot, index), ...]``, several at a time; the slots are reused in turn."""

    def __init__(self, order: Sequence[int], slots: int) -> None:
        self.order, self.slots = order, slots

    def __len__(self) -> int:
        return -(-len(self.order) // _CHUNK)

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        for start in range(0, len(self.order), _CHUNK):
            places = range(start, min(start + _CHUNK, len(self.order)))
            yield [(place % self.slots, self.order[place]) for place in places]


def decode(
    files: Sequence[tuple[Source, str]],
    fit: ImageFit | None,
    order: Sequence[int] | None = None,
    workers: int | None = None,
    timeout: float | None = None,
) -> Iterator[Tensor | UnreadableImage]:
    """Reads images in order, while the caller works with earlier images.

    Args:
        files: sources and names of images in them.
        fit: how images become squares, see :class:`avalanche_f2ocl.image_fit.ImageFit`; None keeps each image's size.
        order: indices into ``files``; by default all files in their order.
        workers: number of processes that decode; 0 for only the caller's, None for :func:`default_workers`.
        timeout: seconds after which a process that sends nothing counts as stuck; by default :data:`TIMEOUT`.

    Yields:
        An image ``(3, H, W)`` uint8, or, for an image that cannot be read, the error that names it.

    Raises:
        RuntimeError: a process died or is stuck; the message names the files that it may have been reading.
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
    # One chunk more than are under way, so that slots are copied before they are reused.
    slots = (workers * AHEAD // _CHUNK + 1) * _CHUNK
    buffer = torch.empty(slots, 3, *_size(files, order, fit), dtype=torch.uint8).share_memory_()
    loader: DataLoader[Any] = DataLoader(
        _Decoder(files, fit, buffer),
        batch_sampler=_Chunks(order, slots),
        num_workers=workers,
        multiprocessing_context="fork" if _FORKS else None,
        prefetch_factor=AHEAD // _CHUNK,
        collate_fn=_as_they_are,
        worker_init_fn=_begin,
        timeout=TIMEOUT if timeout is None else timeout,
        generator=torch.Generator(),  # otherwise it would draw from the global one
    )
    chunks = iter(loader)
    try:
        for start in range(0, len(order), _CHUNK):
            try:
                chunk = next(chunks)
            except (RuntimeError, OSError, EOFError) as error:
                for process in getattr(chunks, "_workers", ()):
                    with suppress(RuntimeError):  # torch reports each process that dies
                        process.kill()  # otherwise the program would wait for a stuck process at its end
                        process.join()
                doubtful = [files[index][1] for index in islice(order, start, start + _CHUNK)]
                raise RuntimeError(
                    f"decoding stopped: {error}. It may have been at {', '.join(doubtful)}; "
                    "with workers=0 there are no processes that can fail"
                ) from error
            slot = start % slots
            images = buffer[slot : slot + _CHUNK].clone()
            for image, sent in zip(images, chunk, strict=False):
                yield image if sent is None else torch.from_numpy(sent) if isinstance(sent, np.ndarray) else sent
    finally:
        with suppress(RuntimeError):  # from a process that a signal to all processes has ended
            chunks._shutdown_workers()  # type: ignore[attr-defined]


def _size(files: Sequence[tuple[Source, str]], order: Sequence[int], fit: ImageFit | None) -> tuple[int, int]:
    """Height and width of the first image that can be read."""
    if fit is not None:
        return fit.image_size, fit.image_size
    for index in islice(order, _CHUNK):
        source, name = files[index]
        with suppress(UnreadableImage):
            width, height = source.size(name)
            return height, width
    return 1, 1


def read(source: Source, name: str, fit: ImageFit | None) -> Tensor | UnreadableImage:
    """Reads an image; returns the error if it cannot be read."""
    try:
        return source.pixels(name, fit)
    except UnreadableImage as error:
        return error


def default_workers() -> int:
    """The default number of processes: one for each core, four at most, if processes are forked; otherwise none.

    Windows and macOS begin a process by importing the program
    anew, which takes seconds, and a program without ``if __name__ == "__main__"`` does not survive it.
    """
    if not _FORKS:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(4, cores)


def check_workers(workers: int) -> int:
    """Raises unless it is an int of at least 0."""
    check_int("workers", workers)
    if workers < 0:
        raise ValueError(f"workers={workers!r}: must be at least 0")
    return workers


def _begin(worker: int) -> None:
    """Prepares a new process."""
    gc.freeze()  # collecting inherited objects would copy memory that is shared with the caller
    # A terminal sends these signals to all processes; the caller stops this one.
    for name in ("SIGINT", "SIGHUP"):
        if number := getattr(signal, name, None):
            signal.signal(number, signal.SIG_IGN)


def _as_they_are(items: list) -> list:
    return items
