"""Names of classes, each of them unique, and labels that are names."""

import difflib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from torch import Tensor


class UnknownClass(KeyError):
    """There is no such class."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError puts quotes around its message


def checked_names(names: Mapping[Any, Any]) -> dict[int, str]:
    """Class names by id, after checking them.

    Raises:
        TypeError: an id is no int, or a name is no string.
        ValueError: two classes have the same name.

    Example:
        >>> checked_names({0: "cat", 7: "dog"})
        {0: 'cat', 7: 'dog'}
    """
    ids: dict[str, int] = {}
    for class_id, name in names.items():
        if isinstance(class_id, bool) or not isinstance(class_id, Integral) or not isinstance(name, str):
            raise TypeError(f"class_names has {class_id!r}: {name!r}; must be names (str) by class id (int)")
        if name in ids:
            raise ValueError(
                f"class_names has {name!r} twice, for the ids {ids[name]} and {class_id}: one name, one class"
            )
        ids[str(name)] = int(class_id)
    return {class_id: name for name, class_id in ids.items()}


def told_apart(names: Mapping[int, str]) -> dict[int, str]:
    """The names of a data set's classes; where several classes have the same name, their ids are appended.

    Example:
        >>> told_apart({134: "crane", 517: "crane", 1: "goldfish"})
        {134: 'crane (134)', 517: 'crane (517)', 1: 'goldfish'}
    """
    times = Counter(names.values())
    return {class_id: name if times[name] == 1 else f"{name} ({class_id})" for class_id, name in names.items()}


def one_each(labels: Any, label: Any, count: int) -> Any:
    """A label for each of ``count`` images.

    Args:
        labels: one label for each image, or a single label for all of them.
        label: a single label for all images; then ``labels`` is None.
        count: number of images.

    Raises:
        TypeError: both or neither are given, or a single label is neither a name nor a class id.

    Example:
        >>> one_each(None, "cat", 2), one_each("cat", None, 2), one_each([7, -3], None, 2)
        (['cat', 'cat'], ['cat', 'cat'], [7, -3])
    """
    if (labels is None) == (label is None):
        raise TypeError("give either labels, one for each image, or label, one for all of them")
    if label is None and not isinstance(labels, (str, Integral)):
        return labels
    single = labels if label is None else label
    if isinstance(single, bool) or not isinstance(single, (str, Integral)):
        raise TypeError(f"label={single!r}: must be a name (str) or a class id (int)")
    return [single] * count


def ids_of(labels: Any, names: Mapping[int, str], free: int | None) -> tuple[Any, dict[int, str]]:
    """Class ids of labels that are names; labels that are not names are returned unchanged.

    Args:
        labels: one label for each image.
        names: known names by class id.
        free: the id of the first new name; further new names get the ids after it. None if all names must be known.

    Returns:
        The ids, and the names including the new ones.

    Raises:
        TypeError: the labels mix names and ids.
        ValueError: ``names`` has a name twice.
        UnknownClass: a name is not known.

    Example:
        >>> ids_of(["owl", "cat", "owl"], {3: "cat"}, free=4)
        ([4, 3, 4], {3: 'cat', 4: 'owl'})
    """
    is_list = isinstance(labels, (Sequence, np.ndarray)) and not isinstance(labels, Tensor)
    if not is_list or not any(isinstance(label, str) for label in labels):
        return labels, dict(names)
    ids = {name: class_id for class_id, name in checked_names(names).items()}
    for label in labels:
        if not isinstance(label, str):
            raise TypeError(f"label {label!r} among names: labels are all class ids or all names")
        if label in ids:
            continue
        if free is None:
            raise unknown(label, ids)
        ids[str(label)], free = free, free + 1
    return [ids[label] for label in labels], {class_id: name for name, class_id in ids.items()}


def unknown(name: str, known: Collection[str]) -> UnknownClass:
    """The error for a name that no class has; it suggests a similar name.

    Example:
        >>> str(unknown("kat", ["cat", "dog"]))
        "class 'kat' is not known: did you mean 'cat'?"
    """
    close = difflib.get_close_matches(name, known, n=1)
    few = f"there are {', '.join(map(repr, sorted(known)))}" if 0 < len(known) <= 10 else f"{len(known)} have a name"
    return UnknownClass(f"class {name!r} is not known: {f'did you mean {close[0]!r}?' if close else few}")
