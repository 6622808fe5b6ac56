"""Images on the disk, decoded when they are needed, and ahead of that if they are used in order."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.utils.data import Dataset

from avalanche_f2ocl.datasets.decoding import decode, default_workers, read
from avalanche_f2ocl.datasets.image_tensors import Samples, collate
from avalanche_f2ocl.datasets.reading import UnreadableImage
from avalanche_f2ocl.datasets.source import Source
from avalanche_f2ocl.image_fit import ImageFit


class FilesOnDisk(Dataset):
    """Images on the disk and their labels; only images decoded ahead are in memory.

    As long as each mini-batch begins where the one before it ended, processes decode the next images ahead.

    Args:
        files: sources and names of images in them, in the order in which they will be used.
        labels: ``(N,)`` int64.
        fit: fits all images to the same size; None if they have the same size.
        workers: number of processes that decode, see :func:`avalanche_f2ocl.datasets.decoding.decode`.

    Attributes:
        targets: labels as a list of ints, as Avalanche and torchvision name them.

    Raises:
        UnreadableImage: on access, if an image cannot be read; the message names it.
        RuntimeError: on access, if a process died or is stuck.

    Example:
        >>> len(FilesOnDisk([], torch.empty(0, dtype=torch.long)))
        0
    """

    collate_fn = staticmethod(collate)

    def __init__(
        self,
        files: Sequence[tuple[Source, str]],
        labels: Tensor,
        fit: ImageFit | None = None,
        workers: int | None = None,
    ) -> None:
        self.files, self.labels, self.fit = files, labels, fit
        self.targets = labels.tolist()
        self.workers = default_workers() if workers is None else workers
        self._stop_ahead()

    def _stop_ahead(self) -> None:
        self._ahead: Iterator[Tensor | UnreadableImage] | None = None
        self._next = 0  # index of the next image, if images are used in order

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        [image], [label] = self._decoded([index]), [self.targets[index]]
        return image, label

    def __getitems__(self, indices: list[int]) -> Samples:
        return Samples(torch.stack(self._decoded(indices)), self.labels[indices])

    def arranged(self, indices: Tensor) -> "FilesOnDisk":
        """The images with these indices ``(n,)``, in this order."""
        files = [self.files[index] for index in indices.tolist()]
        return FilesOnDisk(files, self.labels[indices], self.fit, self.workers)

    def _decoded(self, indices: list[int]) -> list[Tensor]:
        if torch.utils.data.get_worker_info() is not None:  # this process already decodes
            return _all_read([read(*self.files[index], self.fit) for index in indices])
        start, end = indices[0], indices[-1] + 1
        in_order = indices == list(range(start, end))
        if not in_order or start != self._next:
            self._stop_ahead()
            self._next = 0
        if in_order and start == self._next and self._ahead is None:
            self._ahead = decode(self.files, self.fit, range(start, len(self)), self.workers)
        try:
            if self._ahead is None:
                decoded = [read(*self.files[index], self.fit) for index in indices]
            else:
                decoded = [next(self._ahead) for _ in indices]
        except BaseException:
            self._stop_ahead()
            raise
        self._next = end if in_order else 0
        if end == len(self):
            self._stop_ahead()
        return _all_read(decoded)

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_ahead": None, "_next": 0}


def _all_read(decoded: list[Tensor | UnreadableImage]) -> list[Tensor]:
    for image in decoded:
        if not isinstance(image, Tensor):
            raise image
    return decoded  # type: ignore[return-value]
