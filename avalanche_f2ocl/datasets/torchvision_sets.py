"""Data sets of torchvision: an ``ImageFolder`` is read from its files, others from their items."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image
from torch.utils.data import Subset

from avalanche_f2ocl.datasets.archives import Folder
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.listed import Part, as_class_id
from avalanche_f2ocl.datasets.numbered import NumberedSource, unreadable

LABELS = ("targets", "_labels", "labels", "y")
"""Attributes in which torchvision's data sets keep their labels."""
NAMES = ("classes", "categories")
"""Attributes in which torchvision's data sets keep the names of classes."""
_TRANSFORMS = ("transform", "target_transform", "transforms")


class Items(NumberedSource):
    """Reads images from a data set's items.

    Args:
        part: name of the data set, see :class:`avalanche_f2ocl.datasets.numbered.NumberedSource`.
        dataset: a data set of (image, label).

    Example:
        >>> Items("train", [(Image.new("L", (6, 4)), 0)]).size("train[0]")
        (6, 4)
    """

    def __init__(self, part: str, dataset: Any) -> None:
        super().__init__(part)
        self.dataset = dataset

    def open(self, index: int) -> Image.Image:
        image = self.dataset[index][0]
        if not isinstance(image, Image.Image):
            raise TypeError(f"the item's image is {type(image).__name__}, but earlier ones were Pillow's")
        return image

    def item(self, index: int) -> tuple[Any, Any]:
        """Image and label.

        Raises:
            UnreadableImage: the data set raises an error; the message names the item.
        """
        try:
            image, label = self.dataset[index]
        except Exception as error:
            raise unreadable(self.name(index), error) from error
        return image, label


def part_of(dataset: Any, split: str) -> Part | None:
    """Lists the images of a torchvision data set or a ``Subset`` of one; None for others and if it makes tensors.

    An ``ImageFolder`` without transforms is read from its files. The items of any other data set are read, with its
    transform, each time that an image is needed, so a random transform gives another image each time.

    Args:
        dataset: a data set of (image, label).
        split: its name in messages.

    Raises:
        UnreadableImage: an item cannot be read.
        TypeError: a label is no integer.
    """
    if type(dataset) is Subset:
        whole, indices = part_of(dataset.dataset, f"{split}.dataset"), list(dataset.indices)
        if whole is None:
            return None
        return Part([whole.images[i] for i in indices], [whole.labels[i] for i in indices], whole.names)
    if not any(kind.__module__.split(".")[0] == "torchvision" for kind in type(dataset).__mro__) or len(dataset) == 0:
        return None
    if _is_of_files(dataset):
        source = ImageSource(".", Folder(Path()))
        labels = [as_class_id(label) for _, label in dataset.samples]
        return Part([(source, path) for path, _ in dataset.samples], labels, _names(dataset, labels))
    items = Items(split, dataset)
    first, last = items.item(0), items.item(len(dataset) - 1)
    if not isinstance(first[0], Image.Image):
        return None
    known, ends = _labels(dataset), [as_class_id(label) for _, label in (first, last)]
    if known is None or [known[0], known[-1]] != ends:  # the items may have labels of another kind
        known = [as_class_id(items.item(index)[1]) for index in range(len(dataset))]
    return Part([(items, items.name(index)) for index in range(len(known))], known, _names(dataset, known))


def _is_of_files(dataset: Any) -> bool:
    """Whether it is an ``ImageFolder`` with its own way of reading images."""
    ways = (type(dataset).__getitem__, getattr(dataset, "loader", None))
    own = all(getattr(way, "__module__", "") == "torchvision.datasets.folder" for way in ways)
    return own and all(getattr(dataset, name, None) is None for name in _TRANSFORMS)


def _labels(dataset: Any) -> list[int] | None:
    """Labels of all items, if the data set has them in a list and does not change them."""
    transform, of_label, of_both = (getattr(dataset, name, None) for name in _TRANSFORMS)
    if of_label is not None or (of_both is not None and transform is None):
        return None
    for name in LABELS:
        labels: Any = getattr(dataset, name, None)
        labels = labels.tolist() if hasattr(labels, "tolist") else labels
        if isinstance(labels, list | tuple) and len(labels) == len(dataset):
            try:
                return [as_class_id(label) for label in labels]
            except TypeError:
                continue
    return None


def _names(dataset: Any, labels: Sequence[int]) -> list[str] | None:
    """Names of the classes, if there is one for each."""
    for name in NAMES:
        names = getattr(dataset, name, None)
        if isinstance(names, list | tuple) and max(labels) < len(names):
            return [", ".join(own) if isinstance(own, tuple) else str(own) for own in names]
    return None
