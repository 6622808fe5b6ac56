"""Data sets made from lists of images, in memory or on the disk."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from avalanche_f2ocl.datasets.by_class import SPLITS, described
from avalanche_f2ocl.datasets.class_folders import decode_all
from avalanche_f2ocl.datasets.decoding import check_workers
from avalanche_f2ocl.datasets.image_files import FilesOnDisk
from avalanche_f2ocl.datasets.image_tensors import ImageTensors
from avalanche_f2ocl.datasets.listed import ListedImages
from avalanche_f2ocl.image_fit import ImageFit
from avalanche_f2ocl.options import Fit

IN_MEMORY_BYTES = 2**31
"""Decoded images that take more than this, 2 GiB, stay on the disk unless ``in_memory`` says otherwise."""


class LoadedData(NamedTuple):
    """The training part, the test part, and the classes' names by id.

    Example:
        >>> from avalanche_f2ocl import class_incremental_stream, datasets
        >>> data = datasets.load("digits").to("cpu")  # or "cuda"
        >>> len(class_incremental_stream(data, groups=5).train_stream)
        5
    """

    train: ImageTensors | FilesOnDisk
    test: ImageTensors | FilesOnDisk
    class_names: dict[int, str]

    def to(self, device: str | torch.device) -> "LoadedData":
        """The same data with all images on a device, so that streams made from it have their images there.

        Raises:
            TypeError: the images are on the disk, not in memory.
        """
        if isinstance(self.train, FilesOnDisk) or isinstance(self.test, FilesOnDisk):
            raise TypeError(f"the images are on the disk: load(..., in_memory=True) before to({device!r})")
        return LoadedData(self.train.to(device), self.test.to(device), self.class_names)


@dataclass(frozen=True)
class Loading:
    """How files become images.

    Args:
        image_size: side in pixels of the squares that images become when they are decoded. None keeps images
            unchanged if all have the same size; otherwise they are fitted as ``fit`` says.
        fit: how images become squares: ``"auto"``, ``"crop"``, ``"squash"`` or ``"pad"``; or a whole
            :class:`avalanche_f2ocl.image_fit.ImageFit`, for example ``strategy.model.backbone.image_fit``.
        in_memory: whether images are decoded at once (True) or when they are needed (False); None decides by
            :data:`IN_MEMORY_BYTES`. The images are the same either way, bit for bit.
        workers: number of processes that decode, see :func:`avalanche_f2ocl.datasets.decoding.decode`.

    Raises:
        TypeError, ValueError: an option is not allowed.

    Example:
        >>> Loading(image_size=224, fit="pad").square().fit
        'pad'
    """

    image_size: int | None = None
    fit: Fit | ImageFit = "auto"
    in_memory: bool | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        self.square()
        if self.workers is not None:
            check_workers(self.workers)
        if self.in_memory is not None and not isinstance(self.in_memory, bool):
            raise TypeError(f"in_memory={self.in_memory!r}: must be True, False or None")

    def square(self) -> ImageFit:
        """How images are fitted if they do not all have the same size."""
        fit = self.fit if isinstance(self.fit, ImageFit) else ImageFit(fit=self.fit)
        return fit if self.image_size is None else replace(fit, image_size=self.image_size)


def load_listed(files: ListedImages, chosen: dict[str, Tensor], loading: Loading) -> LoadedData:
    """Loads listed images, into memory or to be decoded when they are needed.

    Args:
        files: images by split and label.
        chosen: indices of the images to load, by split, ``(n,)`` int64.
        loading: how files become images.

    Raises:
        UnreadableImage: an image that is decoded at once cannot be read; the message names it.
    """
    if files.passed_over:
        message = f"skipped, because not in a class folder or not an image: {described(files.passed_over)}"
        warnings.warn(message, stacklevel=4)
    shared = files.shared_size(chosen) if loading.image_size is None else None
    fit = loading.square() if shared is None else None
    width, height = shared or (loading.square().image_size,) * 2
    in_memory = loading.in_memory
    if in_memory is None:
        in_memory = 3 * width * height * sum(map(len, chosen.values())) <= IN_MEMORY_BYTES
    parts: list[Any] = []
    for split in SPLITS:
        own, labels = files.chosen(split, chosen[split]), files.labels[split][chosen[split]]
        if in_memory:
            parts.append(ImageTensors(decode_all(own, fit, loading.workers, split), labels))
        else:
            parts.append(FilesOnDisk(own, labels, fit, loading.workers))
    return LoadedData(parts[0], parts[1], files.names_by_label())
