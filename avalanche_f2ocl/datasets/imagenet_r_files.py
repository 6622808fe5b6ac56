"""ImageNet-R: 30,000 renditions (art, cartoons, toys, ...) of 200 ImageNet classes, split 80/20 by class.

Data: Hendrycks et al., The Many Faces of Robustness, 2021. They publish one part only; F2OCL
(arXiv 2510.00467, Experiments) trains on 80 % of each class. Which 80 %, is fixed here.
"""

import re
from os import PathLike
from pathlib import Path

import torch

from avalanche_f2ocl.datasets.archives import Inside, Tar
from avalanche_f2ocl.datasets.by_class import SPLITS
from avalanche_f2ocl.datasets.class_folders import ImageFiles
from avalanche_f2ocl.datasets.download import check_file, download
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.location import data_folder
from avalanche_f2ocl.rng import generator

URL = "https://people.eecs.berkeley.edu/~hendrycks/imagenet-r.tar"
SIZE = 2_191_079_936
"""Of the archive, in bytes, as tensorflow_datasets lists it."""
MD5 = "a61312130a589d0ca1a8fca1f2bd3337"
"""Of the archive, as several libraries of data sets check it."""
CLASSES = 200
IMAGES = 30_000
TRAINING_SHARE = 0.8


class ImageNetRFiles(ImageFiles):
    """Lists ImageNet-R by split and class, and decodes the images asked for.

    Read is the folder ``<root>/imagenet-r`` if there is one, else the archive ``<root>/imagenet-r.tar``
    (2.2 GB, never unpacked). Its size and MD5 are checked every time, which takes seconds.

    The split: the file names of a class, sorted, are permuted by a generator of (``split_seed``, WordNet
    id); the first 80 %, rounded to the nearest whole number, are for training. So it depends on names
    only, which the archive's MD5 fixes. A folder is only checked for its number of images.

    Args:
        root: folder; default Avalanche's data folder.
        download: whether to fetch the archive if neither is there.
        split_seed: another one gives another split.

    Attributes:
        class_names: from the archive's README.txt, else WordNet ids; labels follow the sorted ids.
        names: per split, ``<WordNet id>/<file>``.
        labels: per split, ``(N,)`` int64.

    Raises:
        TypeError: ``root`` is no path, ``split_seed`` no int.
        FileNotFoundError: neither is there, and ``download=False``.
        ValueError: a damaged archive, or other than 30,000 images in 200 classes.
        OSError: the download failed.

    Example:
        >>> files = ImageNetRFiles("data")  # doctest: +SKIP
        >>> sum(map(len, files.names.values()))  # doctest: +SKIP
        30000
    """

    def __init__(self, root: str | PathLike | None = None, download: bool = True, split_seed: int = 0) -> None:
        if isinstance(split_seed, bool) or not isinstance(split_seed, int):
            raise TypeError(f"split_seed={split_seed!r}: must be an int, is {type(split_seed).__name__}")
        folder = _data_folder(root) / "imagenet-r"
        if folder.is_dir():
            self.source = ImageSource(folder)
        else:
            path = _archive(folder.with_suffix(".tar"), download)
            self.source = ImageSource(path, Inside(Tar(path), "imagenet-r/"))
        by_wnid = _by_wnid(self.source.images)
        images = sum(map(len, by_wnid.values()))
        if (len(by_wnid), images) != (CLASSES, IMAGES):
            raise ValueError(
                f"{str(self.source.path)!r} has {images} images in {len(by_wnid)} folders <WordNet id>/, expected are "
                f"{IMAGES} in {CLASSES}: unpack {URL} again, or delete it to have it downloaded"
            )
        parts = {wnid: _split(wnid, names, split_seed) for wnid, names in by_wnid.items()}
        self._set({split: {wnid: part[i] for wnid, part in parts.items()} for i, split in enumerate(SPLITS)})
        if "README.txt" in self.source.files:
            with self.source.archive.open("README.txt") as file:
                readable = dict(re.findall(r"^(n\d{8})\s+(\S.*?)\s*$", file.read().decode(errors="replace"), re.M))
            self.class_names = [readable.get(wnid, wnid) for wnid in self.class_names]


def _data_folder(root: str | PathLike | None) -> Path:
    if root is None:
        return data_folder("imagenet-r")
    if not isinstance(root, (str, PathLike)):
        raise TypeError(f"root={root!r}: must be the path of a folder, is {type(root).__name__}")
    return Path(root)


def _archive(path: Path, fetch: bool) -> Path:
    if path.exists():
        check_file(path, SIZE, MD5)
    elif fetch:
        download(URL, path, SIZE, MD5)
    else:
        raise FileNotFoundError(
            f"neither {str(path)!r} nor the folder {str(path.with_suffix(''))!r} is there: "
            f"say download=True, or fetch {URL} by hand"
        )
    return path


def _by_wnid(images: list[str]) -> dict[str, list[str]]:
    """Images by WordNet id, both ascending."""
    by_wnid: dict[str, list[str]] = {}
    for name in images:
        if match := re.fullmatch(r"(n\d{8})/[^/]+", name):
            by_wnid.setdefault(match[1], []).append(name)
    return by_wnid


def _split(wnid: str, names: list[str], seed: int) -> tuple[list[str], list[str]]:
    order = torch.randperm(len(names), generator=generator(seed, f"imagenet-r-split-{wnid}")).tolist()
    cut = round(TRAINING_SHARE * len(names))
    return sorted(names[i] for i in order[:cut]), sorted(names[i] for i in order[cut:])
