"""Images of folders, archives and files in mini-batches, decoded ahead of their use."""

from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from avalanche_f2ocl.datasets.archives import is_archive
from avalanche_f2ocl.datasets.decoding import decode
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.reading import UnreadableImage, is_image
from avalanche_f2ocl.image_fit import ImageFit

ImageFile = tuple[ImageSource, str]


def unlabelled(paths: Sequence[str]) -> tuple[list[ImageFile], list[str]]:
    """Every image in files, folders and archives, in the order given, and the names of other files there.

    Raises:
        FileNotFoundError, ValueError: there is no such path, or no image in it.
    """
    found: list[ImageFile] = []
    others: list[str] = []
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"no such file or folder: {str(path)!r}")
        if path.is_file() and (is_image(path.name) or not is_archive(path)):
            found.append((ImageSource(path.parent), path.name))
            continue
        source = ImageSource(path)
        if not source.images:
            raise ValueError(f"{str(path)!r} has no images in it")
        found += [(source, name) for name in source.images]
        others += [str(path / name) for name in source.files if not is_image(name)]
    return found, others


def minibatches(
    files: Sequence[ImageFile],
    fit: ImageFit,
    batch_size: int,
    unreadable: Callable[[UnreadableImage], None],
    workers: int | None = None,
) -> Generator[tuple[list[int], Tensor], None, None]:
    """Indices ``(B,)`` and pixels ``(B, 3, S, S)`` uint8 of images.

    Args:
        files: sources and names of images in them.
        fit: how images become squares of S pixels a side.
        batch_size: largest number of images at a time.
        unreadable: called for each image that cannot be read; the image is skipped unless this raises.
        workers: number of processes that decode, see :func:`avalanche_f2ocl.datasets.decoding.decode`.

    Raises:
        RuntimeError: a process that decodes died or is stuck.
    """
    indices: list[int] = []
    pixels: list[Tensor] = []
    for index, image in enumerate(decode(files, fit, workers=workers)):
        if isinstance(image, Tensor):
            indices.append(index)
            pixels.append(image)
        else:
            unreadable(image)
        if pixels and (len(pixels) == batch_size or index == len(files) - 1):
            yield indices, torch.stack(pixels)
            indices, pixels = [], []


class Unreadable:
    """Reports each file that cannot be read when it occurs.

    Args:
        strict: whether the first such file raises an error.
        say: prints a line that is no result.

    Attributes:
        names: names of such files so far.
    """

    def __init__(self, strict: bool, say: Callable[[str], None]) -> None:
        self.strict, self.say = strict, say
        self.names: list[str] = []

    def __call__(self, error: UnreadableImage) -> None:
        if self.strict:
            raise error
        self.names.append(error.name)
        self.say(f"skipped: {error}")
