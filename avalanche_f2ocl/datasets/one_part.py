"""Data sets that are published as one part, ``<WordNet id>/*``, and split 80/20 by class here."""

import re
from collections.abc import Callable

import torch

from avalanche_f2ocl.datasets.by_class import SPLITS
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.published import Listing, text
from avalanche_f2ocl.rng import generator

TRAINING_SHARE = 0.8


def one_part(name: str, seed: int = 0) -> Callable[[ImageSource], Listing]:
    """Makes a function that lists the images of ``<WordNet id>/``, split into two parts.

    The file names of a class, sorted, are permuted by a generator of (``seed``, ``name``, WordNet id); the first 80 %,
    rounded to the nearest whole number, are for training. So the split depends on names only. Labels follow the sorted
    ids; the names of the classes come from the README.txt.

    Args:
        name: name of the data set.
        seed: seed of the split.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp(), "n01443537")
        >>> folder.mkdir()
        >>> for i in range(5):
        ...     (folder / f"{i}.jpg").touch()
        >>> listing = one_part("mine")(ImageSource(folder.parent))
        >>> [len(part["n01443537"]) for part in listing.by_class.values()]
        [4, 1]
    """

    def listing(source: ImageSource) -> Listing:
        by_wnid: dict[str, list[str]] = {}
        for image in source.images:
            if match := re.fullmatch(r"(n\d{8})/[^/]+", image):
                by_wnid.setdefault(match[1], []).append(image)
        parts = {wnid: _split(names, seed, f"{name}-split-{wnid}") for wnid, names in by_wnid.items()}
        by_class = {split: {wnid: part[i] for wnid, part in parts.items()} for i, split in enumerate(SPLITS)}
        readable = re.findall(r"^(n\d{8})\s+(\S.*?)\s*$", text(source, "README.txt"), re.M)
        return Listing(by_class, dict(readable))

    return listing


def _split(names: list[str], seed: int, purpose: str) -> tuple[list[str], list[str]]:
    order = torch.randperm(len(names), generator=generator(seed, purpose)).tolist()
    cut = round(TRAINING_SHARE * len(names))
    return sorted(names[i] for i in order[:cut]), sorted(names[i] for i in order[cut:])
