"""The classes of a source's images, by the folders that they lie in."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

import torch

from avalanche_f2ocl.datasets.image_source import ImageSource, normal
from avalanche_f2ocl.datasets.reading import is_image
from avalanche_f2ocl.rng import generator

SPLITS = ("train", "test")


@dataclass(frozen=True)
class ClassFiles:
    """Images and their classes.

    Attributes:
        names: names of files, sorted.
        classes: for each file, the name of its class.
        passed_over: files that are no images by their names, or lie in no class.
        empty: names of classes whose folders hold no image; an archive may not list such folders.
        whole: whether the source is not divided into parts.
    """

    names: list[str]
    classes: list[str]
    passed_over: list[str]
    empty: list[str]
    whole: bool


def files_by_class(source: ImageSource, split: str) -> ClassFiles:
    """The images of ``<split>/<class>/``, or of ``<class>/`` if there is neither ``train/`` nor ``test/``.

    Images in subfolders of a class belong to the class. A single folder around everything, as in a zip of a folder, is
    ignored. Class names are in Unicode's composed form.

    Args:
        source: source of the images.
        split: ``"train"`` or ``"test"``.

    Raises:
        ValueError: there are no such images.
    """
    paths = {name: PurePosixPath(name).parts for name in source.files}
    around = _around([parts for name, parts in paths.items() if is_image(name)])
    depth = len(around)
    own = {name: p[depth:] for name, p in paths.items() if p[:depth] == around and len(p) > depth}
    whole = not any(parts[0] in SPLITS and len(parts) > 1 for parts in own.values())
    before = 0 if whole else 1
    found = {
        name: normal(parts[before])
        for name, parts in own.items()
        if is_image(name) and len(parts) > before + 1 and (whole or parts[0] == split)
    }
    if not found:
        there = "" if whole else f"; it has {'/ and '.join(sorted({p[0] for p in own.values()} & set(SPLITS)))}/"
        raise ValueError(f"{str(source.path)!r} has no images in <class>/ or {split}/<class>/{there}")
    elsewhere = {name for name, p in own.items() if is_image(name) and p[0] in SPLITS and p[0] != split and len(p) > 2}
    passed_over = [name for name in paths if name not in found and name not in elsewhere]
    names, depth = sorted(found), len(around) + before + 1
    folders = [parts for name in source.folders if len(parts := PurePosixPath(name).parts) == depth]
    inside = around if whole else (*around, split)
    classes = {normal(parts[-1]) for parts in folders if parts[:-1] == inside}
    empty = sorted(classes - set(found.values()))
    return ClassFiles(names, [found[name] for name in names], passed_over, empty, whole)


def hold_out(files: ClassFiles, share: float) -> tuple[list[int], list[int]]:
    """Separates a share of each class from the rest, by file names alone, so that every call gives the same.

    Args:
        files: images and their classes.
        share: share of a class's images, in [0, 1). Their number is rounded, but of two or more images at least one is
            on either side.

    Returns:
        Indices of the rest and of the share, ascending.

    Example:
        >>> files = ClassFiles([f"cat/{i}.jpg" for i in range(5)], ["cat"] * 5, [], [], True)
        >>> rest, share = hold_out(files, 0.2)
        >>> len(rest), len(share)
        (4, 1)
    """
    if share == 0:
        return list(range(len(files.names))), []
    by_class: dict[str, list[int]] = {}
    for index, class_name in enumerate(files.classes):
        by_class.setdefault(class_name, []).append(index)
    rest: list[int] = []
    held: list[int] = []
    for class_name, indices in by_class.items():
        count = min(max(1, round(share * len(indices))), len(indices) - 1)
        order = torch.randperm(len(indices), generator=generator(0, f"hold-out-{class_name}")).tolist()
        held += [indices[i] for i in order[:count]]
        rest += [indices[i] for i in order[count:]]
    return sorted(rest), sorted(held)


def fingerprint(source: ImageSource, files: ClassFiles) -> str:
    """SHA-256 of the names and sizes of files: it shows whether other files are the same, but not what they are."""
    digest = hashlib.sha256()
    for name in files.names:
        size = -1
        with suppress(OSError):  # a link may lead to nothing
            size = source.archive.bytes(name)
        digest.update(f"{PurePosixPath(name).name} {size}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def described(files: Sequence[str], most: int = 3) -> str:
    """Describes files in a message: their number and the first few names.

    Example:
        >>> described(["a", "b", "c", "d"])
        '4 (a, b, c, ...)'
    """
    return f"{len(files)} ({', '.join(files[:most])}{', ...' if len(files) > most else ''})"


def _around(images: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The folders around the classes or parts."""
    around: tuple[str, ...] = ()
    while True:
        inside = [parts[len(around) :] for parts in images]
        first = Counter(parts[0] for parts in inside)
        if len(first) != 1 or next(iter(first)) in SPLITS or any(len(parts) < 3 for parts in inside):
            return around
        if len({parts[1] for parts in inside}) == 1 and all(len(parts) == 3 for parts in inside):
            return around  # may be one class with one folder in it, or a folder around one class: the former is assumed
        around += (next(iter(first)),)
