"""Image folders, zips and tars with ``train/<class>/*`` and ``test/<class>/*``."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from avalanche_f2ocl.datasets.by_class import SPLITS, files_by_class
from avalanche_f2ocl.datasets.decoding import decode
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.listed import ListedImages
from avalanche_f2ocl.datasets.source import Source
from avalanche_f2ocl.image_fit import ImageFit

_MANY = 1000  # with fewer images, starting processes is not worth it
_SHOWN = 5000  # with fewer images, there is no progress bar


class ImageFiles(ListedImages):
    """Lists the images of a source by split and class.

    Args:
        path: folder, zip or tar, see :func:`avalanche_f2ocl.datasets.by_class.files_by_class`.

    Attributes:
        source: source of the images.
        class_names: sorted names of the classes; a label is an index into them.
        names: file names by split.
        labels: labels by split, ``(N,)`` int64.
        passed_over: files that are no images by their names, or lie in no class.

    Raises:
        FileNotFoundError: there is no such path.
        ValueError: the file is of another kind, ``train`` or ``test`` is missing, or a class has no images in one of
            them.
    """

    def __init__(self, path: str | Path) -> None:
        self.source = ImageSource(path)
        parts = {split: files_by_class(self.source, split) for split in SPLITS}
        if parts["train"].whole:
            raise ValueError(f"{str(path)!r} has no test/<class>/: allowed are train/<class>/* and test/<class>/*")
        classes = {split: set(part.classes) for split, part in parts.items()}
        every = set[str]().union(*classes.values(), *(part.empty for part in parts.values()))
        for split in SPLITS:
            if lacking := sorted(every - classes[split]):
                raise ValueError(f"{str(path)!r}: no images in {split}/ for class {', '.join(lacking[:5])}")
        by_class: dict[str, dict[str, list[str]]] = {}
        for split, part in parts.items():
            by_class[split] = {name: [] for name in sorted(classes[split])}
            for name, class_name in zip(part.names, part.classes, strict=True):
                by_class[split][class_name].append(name)
        self.passed_over = sorted(set(parts["train"].passed_over) & set(parts["test"].passed_over))
        self._set(by_class)

    def _set(self, by_class: dict[str, dict[str, list[str]]]) -> None:
        """Stores file names by split and class; both splits have the same classes, in the order of their labels."""
        self.class_names = list(by_class["train"])
        self.names = {s: [name for c in self.class_names for name in by_class[s][c]] for s in SPLITS}
        sizes = {s: torch.tensor([len(by_class[s][c]) for c in self.class_names]) for s in SPLITS}
        self.labels = {s: torch.arange(len(self.class_names)).repeat_interleave(sizes[s]) for s in SPLITS}

    def chosen(self, split: str, indices: Tensor) -> list[tuple[ImageSource, str]]:
        """The files with these indices, ``(N,)``."""
        return [(self.source, self.names[split][i]) for i in indices.tolist()]


def decode_all(
    files: Sequence[tuple[Source, str]], fit: ImageFit | None, workers: int | None = None, what: str = "images"
) -> Tensor:
    """Decodes images that have the same size, or are fitted to it, into memory: ``(N, 3, H, W)`` uint8.

    Args:
        files: sources and names of images in them.
        fit: how images become squares; None keeps each image's size.
        workers: number of processes that decode, see :func:`avalanche_f2ocl.datasets.decoding.decode`.
        what: what the images are, for the progress bar.

    Raises:
        UnreadableImage: a file is no image that can be read; the message names it.
    """
    images = torch.empty(0)
    workers = (None if len(files) >= _MANY else 0) if workers is None else workers
    hidden = None if len(files) >= _SHOWN else True  # None: hidden without a terminal
    decoded = decode(files, fit, workers=workers)
    for i, pixels in enumerate(tqdm(decoded, f"decode {what}", len(files), disable=hidden, leave=False)):
        if not isinstance(pixels, Tensor):
            raise pixels
        if i == 0:  # a list to be stacked later would take the memory twice
            images = pixels.new_empty(len(files), *pixels.shape)
        images[i] = pixels
    return images
