"""Image folders and zips with ``train/<class>/*`` and ``test/<class>/*``, decoded once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from zipfile import BadZipFile, ZipFile

import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor
from tqdm import tqdm

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
SPLITS = ("train", "test")
MIXED_SIZE = 224
"""Side in pixels of the squares that images of different sizes are brought to."""


class ImageFiles:
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
        self.path = Path(path)
        if self.path.is_dir():
            self._open: Callable[[str], BinaryIO] = lambda name: (self.path / name).open("rb")
            listed = [p.relative_to(self.path).as_posix() for p in self.path.glob("*/*/*")]
        elif self.path.is_file():
            try:
                archive = ZipFile(self.path)
            except BadZipFile as error:
                raise ValueError(f"{str(path)!r} is neither a folder nor a zip of images") from error
            self._open = lambda name: BytesIO(archive.read(name))
            listed = archive.namelist()
        else:
            raise FileNotFoundError(f"no such folder or zip: {str(path)!r}")
        self._index(listed)

    def _index(self, listed: list[str]) -> None:
        by_class: dict[str, dict[str, list[str]]] = {split: {} for split in SPLITS}
        for name in sorted(listed):
            parts = PurePosixPath(name).parts
            if len(parts) in (2, 3) and parts[0] in SPLITS and ".." not in parts:
                files = by_class[parts[0]].setdefault(parts[1], [])
                if len(parts) == 3 and name.lower().endswith(SUFFIXES):
                    files.append(name)
        for folder in self.path.glob("*/*") if self.path.is_dir() else ():
            if folder.is_dir() and folder.parent.name in SPLITS:
                by_class[folder.parent.name].setdefault(folder.name, [])
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
        images = None
        for i, name in enumerate(tqdm(names, desc=f"decode {split}", disable=len(names) < 5000, leave=False)):
            with self._image(name) as image:
                image = image.convert("RGB")
                if image_size is not None:
                    image = image.resize((image_size, image_size), Image.Resampling.BICUBIC)
                pixels = pil_to_tensor(image)
            if images is None:  # at once, not as a list to be stacked: that would take the memory twice
                images = pixels.new_empty(len(names), *pixels.shape)
            images[i] = pixels
        return images

    def share_a_size(self, chosen: dict[str, Tensor]) -> bool:
        """Whether the images with these indices per split all have one size; reads headers only."""
        first = None
        for split, indices in chosen.items():
            for i in indices.tolist():
                with self._image(self.names[split][i]) as image:
                    first = first or image.size
                    if image.size != first:
                        return False
        return True

    @contextmanager
    def _image(self, name: str) -> Iterator[Image.Image]:
        try:
            with self._open(name) as file, Image.open(file) as image:
                yield image
        except (OSError, BadZipFile) as error:
            raise ValueError(f"{str(self.path)!r}: {name} is no image that can be read ({error})") from error
