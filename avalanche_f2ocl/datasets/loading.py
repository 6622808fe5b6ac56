"""Image data sets, in memory or on the disk; each item is an image, uint8 ``(C, H, W)``, and an int."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.datasets.by_class import SPLITS
from avalanche_f2ocl.datasets.class_folders import ImageFiles
from avalanche_f2ocl.datasets.cub200 import CUB200
from avalanche_f2ocl.datasets.from_files import LoadedData, Loading, load_listed
from avalanche_f2ocl.datasets.image_tensors import ImageTensors
from avalanche_f2ocl.datasets.imagenet_a import IMAGENET_A
from avalanche_f2ocl.datasets.imagenet_r_files import ImageNetRFiles
from avalanche_f2ocl.datasets.listed import ListedImages, as_class_id, check_same_classes
from avalanche_f2ocl.datasets.location import data_folder
from avalanche_f2ocl.datasets.pairs import listed, pair_of
from avalanche_f2ocl.datasets.published import PublishedFiles
from avalanche_f2ocl.datasets.tiny_imagenet import TINY_IMAGENET
from avalanche_f2ocl.image_fit import ImageFit
from avalanche_f2ocl.options import Fit
from avalanche_f2ocl.rng import generator

_FIXED = 0  # the images kept per class are the same for every seed

PUBLISHED = {about.name: about for about in (CUB200, TINY_IMAGENET, IMAGENET_A)}
"""Data sets by name that are loaded from nothing but their description."""


def load(
    dataset: str | Path | Sequence[Any] | Mapping[str, Any],
    train_per_class: int | None = None,
    test_per_class: int | None = None,
    image_size: int | None = None,
    root: str | Path | None = None,
    *,
    fit: Fit | ImageFit = "auto",
    in_memory: bool | None = None,
    workers: int | None = None,
) -> LoadedData:
    """Loads a data set by name, by path, or from a pair of data sets.

    Args:
        dataset: one of these:

            - a name: ``"cifar100"`` (torchvision's), ``"imagenet-r"`` (see :func:`imagenet_r`), ``"cub200"``
              (CUB-200-2011, 1.2 GB, unpacked once), ``"tiny-imagenet"`` (250 MB; its ``val/`` is the test part) or
              ``"imagenet-a"`` (690 MB, split as ImageNet-R is), all of them downloaded and checked; or ``"digits"``
              (scikit-learn's, a fixed stratified split of 1437 and 360);
            - the path of a folder, zip or tar with ``train/<class>/*`` and ``test/<class>/*``;
            - a pair (train, test) of Hugging Face's data sets (or a ``DatasetDict``), of paths of WebDataset's tars,
              such as ``"train-{000..099}.tar"`` or a list, or of torchvision's data sets; all these are read as files
              are. Pairs of other data sets of (image, int) are held in memory unchanged;
            - a result of this function, which is used unchanged, also after ``.to("cuda")``, see :class:`LoadedData`.
        train_per_class, test_per_class: number of images kept of each class, drawn by a fixed generator; a class
            with fewer images keeps all. None keeps all.
        image_size: side in pixels of the squares that images become; None keeps images unchanged if all have the same
            size.
        root: folder for downloads; by default Avalanche's data folder.
        fit: how images become squares, see :class:`~avalanche_f2ocl.datasets.from_files.Loading`.
        in_memory: whether images are decoded at once (True) or when they are needed (False); None for at once up to
            2 GiB.
        workers: number of processes that decode, see :func:`avalanche_f2ocl.datasets.decoding.decode`.

    Raises:
        TypeError: ``dataset`` is none of these.
        ValueError: the name is unknown, a folder or archive is damaged or empty, the parts differ in their classes, or
            an image cannot be read.
        FileNotFoundError: there is no such path.
        OSError: the download failed.

    Example:
        >>> data = load("digits", train_per_class=5)
        >>> len(data.train), len(data.test), data.train[0][0].shape
        (50, 360, torch.Size([1, 8, 8]))
    """
    per_class, loading = per_class_counts(train_per_class, test_per_class), Loading(image_size, fit, in_memory, workers)
    if isinstance(dataset, LoadedData):
        return _loaded(dataset, per_class)
    if dataset == "digits":
        return _from_tensors(_digits(), per_class)
    if dataset == "cifar100":
        return _from_tensors(_cifar100(root), per_class)
    if dataset == "imagenet-r":
        return _from_files(ImageNetRFiles(root), per_class, loading)
    if isinstance(dataset, str) and dataset in PUBLISHED:
        return _from_files(PublishedFiles(PUBLISHED[dataset], root), per_class, loading)
    if isinstance(dataset, (str, Path)):
        if not Path(dataset).exists():
            raise FileNotFoundError(
                f"dataset={str(dataset)!r}: allowed are 'cifar100', 'imagenet-r', 'digits', "
                f"{', '.join(map(repr, PUBLISHED))}, or the path of a folder, zip or tar, and there is no such path"
            )
        return _from_files(ImageFiles(dataset), per_class, loading)
    pair = pair_of(dataset)
    if (files := listed(pair)) is not None:
        return _from_files(files, per_class, loading)
    return _from_tensors(({split: _in_memory(part) for split, part in zip(SPLITS, pair, strict=True)}, None), per_class)


def imagenet_r(
    root: str | PathLike | None = None,
    download: bool = True,
    split_seed: int = 0,
    train_per_class: int | None = None,
    test_per_class: int | None = None,
    image_size: int | None = None,
    *,
    fit: Fit | ImageFit = "auto",
    in_memory: bool | None = None,
    workers: int | None = None,
) -> LoadedData:
    """Loads ImageNet-R (Hendrycks et al. 2021): 200 classes, 80 % of each for training, as in F2OCL's experiments.

    At 224 pixels a side, all its 30,000 images ``(3, 224, 224)`` uint8 would take 4.5 GB of memory, so they stay on
    the disk unless ``in_memory=True``.

    Args:
        root: folder of the data; by default Avalanche's data folder.
        download: whether to download the archive if neither folder nor archive is there.
        split_seed: seed of the split.
        train_per_class, test_per_class: number of images kept of each class; None keeps all.
        image_size, fit, in_memory, workers: how files become images of the same size, see
            :class:`~avalanche_f2ocl.datasets.from_files.Loading`.

    Raises:
        TypeError, ValueError: an option is not allowed, or the data are damaged.
        FileNotFoundError: neither folder nor archive is there, and ``download=False``.
        OSError: the download failed.

    Example:
        >>> data = imagenet_r("data", train_per_class=10)  # doctest: +SKIP
        >>> len(data.train), data.train[0][0].shape, data.class_names[0]  # doctest: +SKIP
        (2000, torch.Size([3, 224, 224]), 'goldfish')
    """
    per_class, loading = per_class_counts(train_per_class, test_per_class), Loading(image_size, fit, in_memory, workers)
    return _from_files(ImageNetRFiles(root, download, split_seed), per_class, loading)


def keep_per_class(labels: Tensor, count: int | None, split: str) -> Tensor:
    """Ascending indices ``(n,)`` int64 of ``count`` samples of each class in ``labels (N,)``, always the same."""
    if count is None:
        return torch.arange(len(labels))
    kept = []
    for class_id in labels.unique().tolist():
        own = (labels == class_id).nonzero().squeeze(1)
        kept.append(own[torch.randperm(len(own), generator=generator(_FIXED, f"keep-{split}", class_id))[:count]])
    return torch.cat(kept).sort().values


def per_class_counts(train: int | None, test: int | None) -> dict[str, int | None]:
    """Images to keep of each class by split; raises TypeError or ValueError unless they are positive ints or None."""
    per_class = {"train": train, "test": test}
    for split, count in per_class.items():
        if count is not None:
            check_positive_int(f"{split}_per_class", count)
    return per_class


def _from_files(files: ListedImages, per_class: dict[str, int | None], loading: Loading) -> LoadedData:
    chosen = {split: keep_per_class(files.labels[split], per_class[split], split) for split in SPLITS}
    return load_listed(files, chosen, loading)


def _from_tensors(loaded, per_class: dict[str, int | None]) -> LoadedData:
    parts, names = loaded
    classes = {split: set(parts[split][1].tolist()) for split in SPLITS}
    check_same_classes(classes)
    chosen = {split: keep_per_class(parts[split][1], per_class[split], split) for split in SPLITS}
    train, test = (ImageTensors(*(tensor[chosen[split]] for tensor in parts[split])) for split in SPLITS)
    if names is None:
        names = {class_id: str(class_id) for class_id in sorted(classes["train"])}
    return LoadedData(train, test, names)


def _loaded(data: LoadedData, per_class: dict[str, int | None]) -> LoadedData:
    if per_class == dict.fromkeys(SPLITS):
        return data
    parts = {}
    for split, part in zip(SPLITS, (data.train, data.test), strict=True):
        if not isinstance(part, ImageTensors):
            raise TypeError("train_per_class, test_per_class: loaded data allow them only if its images are in memory")
        parts[split] = (part.images, part.labels)
    return _from_tensors((parts, data.class_names), per_class)


def _digits():
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    data = load_digits()
    images = torch.from_numpy((data.images * 255 / 16).round().astype(np.uint8)).unsqueeze(1)
    labels = torch.from_numpy(data.target).long()
    split = train_test_split(np.arange(len(labels)), test_size=0.2, stratify=labels, random_state=_FIXED)
    parts = {name: (images[index], labels[index]) for name, index in zip(SPLITS, split, strict=True)}
    return parts, {digit: str(digit) for digit in range(10)}


def _cifar100(root: str | Path | None):
    from torchvision.datasets import CIFAR100

    root = data_folder("cifar100") if root is None else root
    try:
        sets = {split: CIFAR100(root, train=split == "train", download=True) for split in SPLITS}
    except (OSError, RuntimeError) as error:
        raise OSError(
            f"CIFAR-100 could not be downloaded to {str(root)!r} ({error}). "
            "Give the path of a folder or zip with train/<class>/* and test/<class>/* instead"
        ) from error
    parts = {
        split: (torch.from_numpy(s.data).permute(0, 3, 1, 2).contiguous(), torch.tensor(s.targets))
        for split, s in sets.items()
    }
    return parts, dict(enumerate(sets["train"].classes))


def _in_memory(part: Any) -> tuple[Tensor, Tensor]:
    if len(part) == 0:
        raise ValueError("a data set of the pair is empty")
    images, labels = zip(*(part[i] for i in range(len(part))), strict=True)
    tensors = [_as_tensor(image) for image in images]
    shapes = {tuple(t.shape) for t in tensors}
    if len(shapes) > 1:
        raise ValueError(f"images have different shapes {sorted(shapes)[:3]}: resize them in the data set's transform")
    return torch.stack(tensors), torch.tensor([as_class_id(label) for label in labels])


def _as_tensor(image: Any) -> Tensor:
    if isinstance(image, Tensor):
        return image
    if isinstance(image, np.ndarray):
        return torch.from_numpy(image if image.ndim == 3 else image[..., None]).permute(2, 0, 1)
    return pil_to_tensor(image)
