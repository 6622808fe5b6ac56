"""Image data sets, decoded once into memory: uint8 ``(C, H, W)`` and an int per item."""

import operator
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.datasets.class_folders import MIXED_SIZE, SPLITS, ImageFiles
from avalanche_f2ocl.datasets.image_tensors import ImageTensors
from avalanche_f2ocl.datasets.imagenet_r_files import ImageNetRFiles
from avalanche_f2ocl.datasets.location import data_folder
from avalanche_f2ocl.rng import generator

_FIXED = 0  # the images kept per class are the same for every seed


class LoadedData(NamedTuple):
    """Training and test part, and the classes' names by id."""

    train: ImageTensors
    test: ImageTensors
    class_names: dict[int, str]


def load(
    dataset: str | Path | Sequence[Any],
    train_per_class: int | None = None,
    test_per_class: int | None = None,
    image_size: int | None = None,
    root: str | Path | None = None,
) -> LoadedData:
    """Loads a data set by name, path, or as a pair.

    Args:
        dataset: ``"cifar100"`` (torchvision's, downloaded), ``"imagenet-r"`` (see :func:`imagenet_r`),
            ``"digits"`` (scikit-learn's, a fixed stratified split of 1437 and 360), a folder or zip with
            ``train/<class>/*`` and ``test/<class>/*``, or a pair (train, test) of data sets of (image, int).
        train_per_class, test_per_class: images kept of each class, drawn by a fixed generator; a class
            with fewer keeps all. None keeps all.
        image_size: side in pixels to which files are resized when they are decoded. None keeps them as
            they are if they share a size; otherwise they become squares of 224.
        root: where ``"cifar100"`` or ``"imagenet-r"`` is kept; default Avalanche's data folder.

    Raises:
        TypeError: ``dataset`` is none of these.
        ValueError: an unknown name, a damaged or empty folder or zip, parts whose classes differ.
        FileNotFoundError: no such path.
        OSError: the download failed.

    Example:
        >>> data = load("digits", train_per_class=5)
        >>> len(data.train), len(data.test), data.train[0][0].shape
        (50, 360, torch.Size([1, 8, 8]))
    """
    per_class = _per_class(train_per_class, test_per_class)
    if dataset == "digits":
        return _from_tensors(_digits(), per_class)
    if dataset == "cifar100":
        return _from_tensors(_cifar100(root), per_class)
    if dataset == "imagenet-r":
        return imagenet_r(root, True, 0, train_per_class, test_per_class, image_size)
    if isinstance(dataset, (str, Path)):
        if not Path(dataset).exists():
            raise FileNotFoundError(
                f"dataset={str(dataset)!r}: allowed are 'cifar100', 'imagenet-r', 'digits', or the path of a folder "
                "or zip, and there is no such path"
            )
        return _from_files(ImageFiles(dataset), per_class, image_size)
    if isinstance(dataset, Sequence) and len(dataset) == 2:
        parts = {split: _in_memory(part) for split, part in zip(SPLITS, dataset, strict=True)}
        return _from_tensors((parts, None), per_class)
    raise TypeError(f"dataset is {type(dataset).__name__}: must be a name, a path, or a pair (train, test)")


def imagenet_r(
    root: str | PathLike | None = None,
    download: bool = True,
    split_seed: int = 0,
    train_per_class: int | None = None,
    test_per_class: int | None = None,
    image_size: int | None = None,
) -> LoadedData:
    """ImageNet-R (Hendrycks et al. 2021): 200 classes, 80 % of each for training, as F2OCL's experiments have it.

    Whole, at 224 pixels a side, its 30,000 images ``(3, 224, 224)`` uint8 take 4.5 GB of memory.

    Args:
        root, download, split_seed: see :class:`avalanche_f2ocl.datasets.imagenet_r_files.ImageNetRFiles`.
        train_per_class, test_per_class, image_size: see :func:`load`; the images' sizes differ.

    Raises:
        TypeError, ValueError, FileNotFoundError, OSError: as for ``ImageNetRFiles`` and :func:`load`.

    Example:
        >>> data = imagenet_r("data", train_per_class=10)  # doctest: +SKIP
        >>> len(data.train), data.train[0][0].shape, data.class_names[0]  # doctest: +SKIP
        (2000, torch.Size([3, 224, 224]), 'goldfish')
    """
    per_class = _per_class(train_per_class, test_per_class)
    return _from_files(ImageNetRFiles(root, download, split_seed), per_class, image_size)


def keep_per_class(labels: Tensor, count: int | None, split: str) -> Tensor:
    """Indices of ``count`` samples of each class, the same in every call; ``(N,)`` -> ``(n,)`` int64, ascending."""
    if count is None:
        return torch.arange(len(labels))
    kept = []
    for class_id in labels.unique().tolist():
        own = (labels == class_id).nonzero().squeeze(1)
        kept.append(own[torch.randperm(len(own), generator=generator(_FIXED, f"keep-{split}", class_id))[:count]])
    return torch.cat(kept).sort().values


def _per_class(train: int | None, test: int | None) -> dict[str, int | None]:
    per_class = {"train": train, "test": test}
    for split, count in per_class.items():
        if count is not None:
            check_positive_int(f"{split}_per_class", count)
    return per_class


def _from_files(files: ImageFiles, per_class: dict[str, int | None], image_size: int | None) -> LoadedData:
    chosen = {split: keep_per_class(files.labels[split], per_class[split], split) for split in SPLITS}
    if image_size is None and not files.share_a_size(chosen):
        image_size = MIXED_SIZE
    parts = [
        ImageTensors(files.decode(split, chosen[split], image_size), files.labels[split][chosen[split]])
        for split in SPLITS
    ]
    return LoadedData(parts[0], parts[1], dict(enumerate(files.class_names)))


def _from_tensors(loaded, per_class: dict[str, int | None]) -> LoadedData:
    parts, names = loaded
    classes = {split: set(parts[split][1].tolist()) for split in SPLITS}
    if classes["train"] != classes["test"]:
        only = sorted(classes["train"] ^ classes["test"])
        raise ValueError(f"the training and the test part differ in their classes: {only[:10]} are in one of them only")
    chosen = {split: keep_per_class(parts[split][1], per_class[split], split) for split in SPLITS}
    train, test = (ImageTensors(*(tensor[chosen[split]] for tensor in parts[split])) for split in SPLITS)
    if names is None:
        names = {class_id: str(class_id) for class_id in sorted(classes["train"])}
    return LoadedData(train, test, names)


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
    return torch.stack(tensors), torch.tensor([_class_id(label) for label in labels])


def _class_id(label: Any) -> int:
    try:
        return operator.index(label)  # not int(), which cuts fractions off
    except TypeError as error:
        raise TypeError(f"label {label!r}: class ids must be integers") from error


def _as_tensor(image: Any) -> Tensor:
    if isinstance(image, Tensor):
        return image
    if isinstance(image, np.ndarray):
        return torch.from_numpy(image if image.ndim == 3 else image[..., None]).permute(2, 0, 1)
    return pil_to_tensor(image)
