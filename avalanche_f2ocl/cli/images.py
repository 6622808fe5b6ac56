"""Images of folders, zips and files in mini-batches."""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from avalanche_f2ocl.datasets.image_source import SUFFIXES, ImageSource, is_image


def labelled(source: ImageSource, split: str) -> tuple[list[str], list[str]]:
    """File names and their classes: from ``<split>/<class>/*`` if there is a folder of that name, else ``<class>/*``.

    Raises:
        ValueError: there are no such images.
    """
    parts = [PurePosixPath(name).parts for name in source.images]
    inside = [p[1:] for p in parts if p[0] == split and len(p) == 3]
    prefix = f"{split}/" if inside else ""
    found = inside or [p for p in parts if len(p) == 2]
    if not found:
        raise ValueError(
            f"{str(source.path)!r} has no images in <class>/ or {split}/<class>/ (allowed are {', '.join(SUFFIXES)})"
        )
    return [f"{prefix}{name}/{file}" for name, file in found], [name for name, _ in found]


def unlabelled(paths: Sequence[str]) -> list[tuple[ImageSource, str]]:
    """Every image of files, folders and zips, in the order given.

    Raises:
        FileNotFoundError, ValueError: no such path, or no image in it.
    """
    found: list[tuple[ImageSource, str]] = []
    for path in map(Path, paths):
        if path.is_file() and is_image(path.name):
            found.append((ImageSource(path.parent), path.name))
            continue
        source = ImageSource(path)
        if not source.images:
            raise ValueError(f"{str(path)!r} has no images in it (allowed are {', '.join(SUFFIXES)})")
        found += [(source, name) for name in source.images]
    return found


def minibatches(
    images: Sequence[tuple[ImageSource, str]], image_size: int, batch_size: int, unreadable: list[str] | None = None
) -> Iterator[tuple[list[int], Tensor]]:
    """Indices ``(B,)`` and pixels ``(B, 3, image_size, image_size)`` uint8 of images.

    Args:
        images: sources and names in them.
        image_size: side in pixels.
        batch_size: most images at a time.
        unreadable: takes the names of those that cannot be read, which are passed over then.

    Raises:
        ValueError: an image cannot be read, and there is no ``unreadable``.
    """
    for start in range(0, len(images), batch_size):
        indices, pixels = [], []
        for index in range(start, min(start + batch_size, len(images))):
            source, name = images[index]
            try:
                pixels.append(source.pixels(name, image_size))
                indices.append(index)
            except ValueError:
                if unreadable is None:
                    raise
                unreadable.append(name)
        if indices:
            yield indices, torch.stack(pixels)
