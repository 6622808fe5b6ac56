"""How results are printed: text, JSON, JSON Lines or CSV."""

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

Format = Literal["text", "json", "jsonl", "csv"]


def print_result(result: Any, text: Callable[[Any], str], form: Format) -> None:
    """Prints a result, or the results of an iterator one after the other as they come.

    Args:
        result: a value that JSON can hold, or an iterator of dictionaries.
        text: makes readable text of one result.
        form: ``"json"`` prints one JSON value, for an iterator a list with one element a line; ``"jsonl"`` prints a
            JSON value a line; ``"csv"`` prints a header and a row for each result.

    Example:
        >>> print_result(iter([{"n": 1}, {"n": 2}]), str, "csv")
        n
        1
        2
    """
    if not isinstance(result, Iterator):
        print(text(result) if form == "text" else json.dumps(result), flush=True)
    elif form == "csv":
        _print_csv(map(flat, result))
    elif form == "json":
        before = "["
        for one in result:
            print(before + json.dumps(one), end="", flush=True)
            before = ",\n"
        print("]" if before != "[" else "[]", flush=True)
    else:
        for one in result:
            print(text(one) if form == "text" else json.dumps(one), flush=True)


def flat(result: Mapping[str, Any]) -> dict[str, Any]:
    """Flattens lists of dictionaries into one level of names; those of the second and later dictionaries are numbered.

    Example:
        >>> flat({"image": "a.png", "classes": [{"class": "cat"}, {"class": "dog"}]})
        {'image': 'a.png', 'class': 'cat', 'class_2': 'dog'}
    """
    row: dict[str, Any] = {}
    for name, value in result.items():
        if not isinstance(value, list):
            row[name] = value
            continue
        for number, one in enumerate(value, 1):
            row |= {key if number == 1 else f"{key}_{number}": of_one for key, of_one in one.items()}
    return row


def _print_csv(rows: Iterator[dict[str, Any]]) -> None:
    writer = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
        sys.stdout.flush()
