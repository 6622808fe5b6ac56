"""Checks of arguments, whose errors say what is allowed."""

import difflib
from collections.abc import Collection
from typing import Any


def check_names(owner: str, given: Collection[str], known: Collection[str]) -> None:
    """Raises ``TypeError`` unless all ``given`` options are known; the message suggests a name or lists all names."""
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(known))}"
            raise TypeError(f"{owner} has no option {name!r}: {hint}")


def check_choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raises ``ValueError`` unless ``value`` is allowed; the message names the values that are."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r}: allowed are {', '.join(map(repr, allowed))}")


def check_number(name: str, value: Any) -> None:
    """Raises unless ``value`` is an int or a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}={value!r}: must be a number, is {type(value).__name__}")


def check_share(name: str, value: Any) -> None:
    """Raises unless ``value`` is a number in [0, 1]."""
    check_number(name, value)
    if not 0 <= value <= 1:
        raise ValueError(f"{name}={value!r}: must be between 0 and 1")


def check_positive(name: str, value: Any) -> None:
    """Raises unless ``value`` is a positive, finite number."""
    check_number(name, value)
    if not 0 < value < float("inf"):
        raise ValueError(f"{name}={value!r}: must be positive and finite")


def check_not_negative(name: str, value: Any) -> None:
    """Raises unless ``value`` is a finite number of at least 0."""
    check_number(name, value)
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name}={value!r}: must be at least 0 and finite")


def check_int(name: str, value: Any) -> None:
    """Raises unless ``value`` is an int."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r}: must be an int, is {type(value).__name__}")


def check_positive_int(name: str, value: Any) -> None:
    """Raises unless ``value`` is an int of at least 1."""
    check_int(name, value)
    if value < 1:
        raise ValueError(f"{name}={value!r}: must be at least 1")
