"""Image folders and zips with ``train/<class>/*`` and ``test/<class>/*``, decoded once."""

from pathlib import Path, PurePosixPath

import torch
from torch import Tensor
from tqdm import tqdm

from avalanche_f2ocl.datasets.image_source import SUFFIXES, ImageSource

SPLITS = ("train", "test")
MIXED_SIZE = 224
"""Side in pixels of the squares that images of different sizes are brought to."""


class ImageFiles(ImageSource):
    """Lists a folder's or zip's images by split and class, and decodes those asked for.

    Args:
        path: folder or zip.

    Attributes:
        class_names: sorted; a label is an index into it.
        names: file names per split.
        labels: per split, ``(N,)`` int64.

    Raises:
        FileNotFoundError: no such path.
        ValueError: no zip, no ``train`` or ``test``, a class without images in one of them.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        by_class: dict[str, dict[str, list[str]]] = {split: {} for split in SPLITS}
        for folder in self.folders:
            split, *rest = PurePosixPath(folder).parts
            if split in SPLITS and len(rest) == 1:
                by_class[split][rest[0]] = []
        for name in self.images:
            split, *rest = PurePosixPath(name).parts
            if split in SPLITS and len(rest) == 2:
                by_class[split].setdefault(rest[0], []).append(name)
        for split in SPLITS:
            if not by_class[split]:
                raise ValueError(
                    f"{str(self.path)!r} has no {split}/<class>/ with images in it: "
                    f"allowed are train/<class>/* and test/<class>/* ({', '.join(SUFFIXES)})"
                )
        class_names = sorted(set(by_class["train"]) | set(by_class["test"]))
        for split in SPLITS:
            empty = [c for c in class_names if not by_class[split].get(c)]
            if empty:
                raise ValueError(f"{str(self.path)!r}: no images in {split}/ for class {', '.join(empty[:5])}")
        self._set(by_class)

    def _set(self, by_class: dict[str, dict[str, list[str]]]) -> None:
        """Takes file names by split and class; both splits have the same classes."""
        self.class_names = sorted(by_class["train"])
        self.names = {s: [name for c in self.class_names for name in by_class[s][c]] for s in SPLITS}
        sizes = {s: torch.tensor([len(by_class[s][c]) for c in self.class_names]) for s in SPLITS}
        self.labels = {s: torch.arange(len(self.class_names)).repeat_interleave(sizes[s]) for s in SPLITS}

    def decode(self, split: str, indices: Tensor, image_size: int | None) -> Tensor:
        """Decodes images to RGB.

        Args:
            split: ``"train"`` or ``"test"``.
            indices: into ``names[split]``, ``(N,)``.
            image_size: side in pixels of a square to resize to (bicubic); None keeps what all share.

        Returns:
            ``(N, 3, H, W)`` uint8.

        Raises:
            ValueError: a file that is no image; the message names it.
        """
        names = [self.names[split][i] for i in indices.tolist()]
        images = torch.empty(0)
        hidden = None if len(names) >= 5000 else True  # None: hidden where there is no terminal
        for i, name in enumerate(tqdm(names, desc=f"decode {split}", disable=hidden, leave=False)):
            pixels = self.pixels(name, image_size)
            if i == 0:  # at once, not as a list to be stacked: that would take the memory twice
                images = pixels.new_empty(len(names), *pixels.shape)
            images[i] = pixels
        return images

    def share_a_size(self, chosen: dict[str, Tensor]) -> bool:
        """Whether the images with these indices per split all have one size; reads headers only."""
        first = None
        for split, indices in chosen.items():
            for i in indices.tolist():
                with self.image(self.names[split][i]) as image:
                    first = first or image.size
                    if image.size != first:
                        return False
        return True
