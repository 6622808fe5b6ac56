"""Checks of arguments, whose errors say what is allowed."""

from typing import Any


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


def check_positive_int(name: str, value: object) -> None:
    """Raises unless ``value`` is an int of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r}: must be an int, is {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name}={value!r}: must be at least 1")
