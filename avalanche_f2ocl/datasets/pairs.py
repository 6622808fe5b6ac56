"""Pairs of a training and a test part whose images can be listed before they are decoded."""

from collections.abc import Mapping, Sequence
from typing import Any

from avalanche_f2ocl.datasets import hugging_face, torchvision_sets, web_dataset
from avalanche_f2ocl.datasets.by_class import SPLITS
from avalanche_f2ocl.datasets.listed import ListedPair, Part


def pair_of(dataset: Sequence[Any] | Mapping[str, Any]) -> tuple[Any, Any]:
    """The training and the test part of a data set.

    Args:
        dataset: both parts in this order, or a Hugging Face ``DatasetDict``.

    Raises:
        TypeError: ``dataset`` is neither of these.
        ValueError: a ``DatasetDict`` lacks one of the parts.

    Example:
        >>> pair_of(["train.tar", "test.tar"])
        ('train.tar', 'test.tar')
    """
    if isinstance(dataset, Mapping) and hugging_face.is_hugging_face(dataset):
        return hugging_face.pair_of(dataset)
    if isinstance(dataset, Sequence) and len(dataset) == 2:
        return dataset[0], dataset[1]
    raise TypeError(f"dataset is {type(dataset).__name__}: must be a name, a path, or a pair (train, test)")


def listed(pair: tuple[Any, Any]) -> ListedPair | None:
    """Lists the images of two Hugging Face, WebDataset or torchvision data sets; None for other data sets.

    Other data sets have to be read item by item.

    Args:
        pair: the training and the test part.

    Raises:
        TypeError: only one of the parts is Hugging Face's or WebDataset's, or a part cannot be listed.
        ValueError, OSError: a part cannot be listed or read.

    Example:
        >>> listed(([("image", 0)], [("image", 0)])) is None
        True
    """
    parts = [_part(part, split) for part, split in zip(pair, SPLITS, strict=True)]
    if parts[0] is not None and parts[1] is not None:
        return ListedPair(parts[0], parts[1])
    for part, other in (pair, pair[::-1]):
        if hugging_face.is_hugging_face(part) or web_dataset.is_shards(part):
            raise TypeError(
                f"one part of the pair is {_described(part)}, the other is {_described(other)}: both must be Hugging "
                "Face's data sets, or both WebDataset's tars"
            )
    return None


def _part(part: Any, split: str) -> Part | None:
    if hugging_face.is_hugging_face(part):
        return hugging_face.part_of(part, split)
    if web_dataset.is_shards(part):
        return web_dataset.part_of(part)
    return torchvision_sets.part_of(part, split)


def _described(part: Any) -> str:
    return repr(part) if web_dataset.is_shards(part) else type(part).__name__
