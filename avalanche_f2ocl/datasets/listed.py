"""Images of a training and a test part, listed with their labels before any of them is decoded."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.datasets.by_class import SPLITS
from avalanche_f2ocl.datasets.source import Source


class ListedImages(ABC):
    """Images by split and label.

    Attributes:
        class_names: names of the classes by label.
        labels: labels by split, ``(N,)`` int64.
        passed_over: names of files or samples that are no images of a class.
    """

    class_names: Sequence[str] | Mapping[int, str]
    labels: dict[str, Tensor]
    passed_over: Sequence[str] = ()

    @abstractmethod
    def chosen(self, split: str, indices: Tensor) -> Sequence[tuple[Source, str]]:
        """Sources, and names in them, of the images with these indices, ``(N,)``."""

    def names_by_label(self) -> dict[int, str]:
        """Names of the classes by label."""
        names = self.class_names
        return dict(names) if isinstance(names, Mapping) else dict(enumerate(names))

    def shared_size(self, chosen: dict[str, Tensor]) -> tuple[int, int] | None:
        """Width and height of the images with these indices by split, if all are the same; reads only file headers.

        Raises:
            UnreadableImage: a file is no image that can be read; the message names it.
        """
        first = None
        for split, indices in chosen.items():
            for source, name in self.chosen(split, indices):
                size = source.size(name)
                first = first or size
                if size != first:
                    return None
        return first


@dataclass(frozen=True)
class Part:
    """The images of a training or a test part.

    Args:
        images: sources, and names of images in them.
        labels: for each image a class id, or the name of a class.
        names: names of the classes by id, if they are known; there may be more names than classes with images.
        passed_over: names of files or samples that are no images of a class.
    """

    images: Sequence[tuple[Source, str]]
    labels: Sequence[int | str]
    names: Sequence[str] | None = None
    passed_over: Sequence[str] = ()


class ListedPair(ListedImages):
    """A training and a test part. If labels are names, ids follow the sorted names.

    Args:
        train, test: the parts.

    Raises:
        TypeError: the labels are neither all integers nor all strings.
        ValueError: a part has no images, a label is below 0, or the parts differ in their classes or class names.

    Example:
        >>> from avalanche_f2ocl.datasets.image_source import ImageSource
        >>> source = ImageSource(".")
        >>> part = Part([(source, "1.png"), (source, "2.png")], ["owl", "cat"])
        >>> pair = ListedPair(part, part)
        >>> pair.labels["train"].tolist(), pair.names_by_label()
        ([1, 0], {0: 'cat', 1: 'owl'})
    """

    def __init__(self, train: Part, test: Part) -> None:
        self.parts = dict(zip(SPLITS, (train, test), strict=True))
        self.passed_over = [*train.passed_over, *test.passed_over]
        for split, part in self.parts.items():
            if not part.images:
                raise ValueError(f"the {split} part of the pair is empty")
        labels: dict[str, list[int]]
        if all(isinstance(label, str) for part in self.parts.values() for label in part.labels):
            names = sorted({str(label) for part in self.parts.values() for label in part.labels})
            ids = {name: class_id for class_id, name in enumerate(names)}
            check_same_classes({split: set(part.labels) for split, part in self.parts.items()})
            labels = {split: [ids[str(label)] for label in part.labels] for split, part in self.parts.items()}
            self.class_names = dict(enumerate(names))
        else:
            labels = {split: [as_class_id(label) for label in part.labels] for split, part in self.parts.items()}
            _check_labels(labels)
            check_same_classes({split: set(own) for split, own in labels.items()})
            self.class_names = _names(train.names, test.names, sorted(set(labels["train"])))
        self.labels = {split: torch.tensor(own) for split, own in labels.items()}

    def chosen(self, split: str, indices: Tensor) -> list[tuple[Source, str]]:
        """Sources, and names in them, of the images with these indices, ``(N,)``."""
        return [self.parts[split].images[index] for index in indices.tolist()]


def as_class_id(label: Any) -> int:
    """A label as an int.

    Raises:
        TypeError: the label is no integer.

    Example:
        >>> as_class_id(torch.tensor(3))
        3
    """
    try:
        return operator.index(label)  # int() would cut off fractions
    except TypeError as error:
        raise TypeError(f"label {label!r}: class ids must be integers") from error


def check_same_classes(classes: Mapping[str, Collection[Any]]) -> None:
    """Raises ``ValueError`` unless the classes, given by split, are the same in training and test part."""
    only = sorted(set(classes["train"]) ^ set(classes["test"]))
    if only:
        raise ValueError(f"the training and the test part differ in their classes: {only[:10]} are in one of them only")


def _check_labels(labels: dict[str, list[int]]) -> None:
    for split, own in labels.items():
        if min(own) < 0:
            index = next(i for i, label in enumerate(own) if label < 0)
            raise ValueError(
                f"{split}[{index}] has the label {own[index]}: class ids must be at least 0. "
                "A part whose labels are kept secret cannot be used"
            )


def _names(train: Sequence[str] | None, test: Sequence[str] | None, used: list[int]) -> dict[int, str]:
    known = [names for names in (train, test) if names is not None and used[-1] < len(names)]
    for label in used:
        if len({names[label] for names in known}) > 1:
            raise ValueError(
                f"the training and the test part name class {label} differently: "
                f"{known[0][label]!r} and {known[1][label]!r}"
            )
    return {label: known[0][label] if known else str(label) for label in used}
