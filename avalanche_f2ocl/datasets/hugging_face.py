"""Data sets of Hugging Face's library ``datasets``, which need not be imported here: the caller has imported it."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from avalanche_f2ocl.datasets.archives import Folder
from avalanche_f2ocl.datasets.listed import Part
from avalanche_f2ocl.datasets.numbered import NumberedSource

IMAGES = ("image", "img")
"""Names of a column of images, for data sets in which no column, or more than one, has the type of images."""
LABELS = ("label", "labels", "fine_label")
"""Names of a column of labels, for data sets in which no column, or more than one, has the type of labels."""


class HuggingFaceImages(NumberedSource):
    """Reads the files in a column.

    Args:
        part: name of the data set, see :class:`avalanche_f2ocl.datasets.numbered.NumberedSource`.
        rows: dicts with the column, which holds a file's bytes, its path, or both in a dict.
        column: name of the column.

    Example:
        >>> HuggingFaceImages("train", [{"image": {"bytes": b"abc", "path": None}}], "image").open(0).read()
        b'abc'
    """

    def __init__(self, part: str, rows: Any, column: str) -> None:
        super().__init__(part)
        self.rows, self.column = rows, column

    def open(self, index: int) -> BinaryIO:
        value = self.rows[index][self.column]
        if isinstance(value, dict):
            value = value.get("path") if value.get("bytes") is None else value["bytes"]
        if isinstance(value, bytes):
            return BytesIO(value)
        if isinstance(value, str):
            return Folder(Path()).open(value)
        raise TypeError(f"column {self.column!r} holds {type(value).__name__}, neither a file's bytes nor its path")


def is_hugging_face(dataset: Any) -> bool:
    """Whether it is a data set of the library, or a dict of such data sets.

    Example:
        >>> is_hugging_face([])
        False
    """
    modules = {kind.__module__.split(".")[0] for kind in type(dataset).__mro__}
    return "datasets" in modules and hasattr(dataset, "cast_column")  # other modules are called "datasets", too


def pair_of(parts: Mapping[str, Any]) -> tuple[Any, Any]:
    """The training and the test part of a ``DatasetDict``: ``"train"``, and ``"test"`` or else ``"validation"``.

    Raises:
        ValueError: one of the parts is missing.
    """
    test = next((parts[name] for name in ("test", "validation") if name in parts), None)
    if "train" not in parts or test is None:
        raise ValueError(
            f"dataset has the parts {', '.join(map(repr, parts))}: 'train' and 'test' or 'validation' are needed; "
            "make a pair (train, test) of other parts"
        )
    return parts["train"], test


def part_of(dataset: Any, split: str) -> Part:
    """Lists the images of a data set; labels are read from their column, and no image is decoded.

    Images are in the column of type ``Image``, labels in the column of type ``ClassLabel``. If no column, or more than
    one, has the type, the first name of :data:`IMAGES` or :data:`LABELS` that fits decides.

    Args:
        dataset: a data set with a length.
        split: its name in messages.

    Raises:
        TypeError: the data set is streamed and has no length.
        ValueError: there is no such column or more than one, or a transform is set, which would not be applied.
    """
    if not hasattr(dataset, "__len__"):
        raise TypeError(f"the {split} part is {type(dataset).__name__}: load it with streaming=False")
    if dataset.format["type"] == "custom":
        raise ValueError(
            f"the {split} part has a transform, but images are read from their files: call reset_format(), and give "
            "image_size and fit to load()"
        )
    plain, features = dataset.with_format(None), dataset.features
    image, label = _column(features, "Image", IMAGES, split), _column(features, "ClassLabel", LABELS, split)
    rows = plain.select_columns([image])
    if _kind(features[image]) == "Image":
        rows = rows.cast_column(image, type(features[image])(decode=False))
    source = HuggingFaceImages(split, rows, image)
    names = features[label].names if _kind(features[label]) == "ClassLabel" else None
    labels = plain.select_columns([label])[:][label]
    return Part([(source, source.name(index)) for index in range(len(labels))], labels, names)


def _column(features: Mapping[str, Any], kind: str, names: tuple[str, ...], split: str) -> str:
    of_kind = [name for name in features if _kind(features[name]) == kind]
    if len(of_kind) == 1:
        return of_kind[0]
    for name in names:
        if name in (of_kind or features):
            return name
    raise ValueError(
        f"the {split} part has {len(of_kind)} columns of type {kind} among {', '.join(map(repr, features))}: "
        f"call rename_column() so that one is named {names[0]!r}"
    )


def _kind(feature: Any) -> str:
    return type(feature).__name__
