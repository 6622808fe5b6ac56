"""How many functions and changes of file a mini-batch and a prediction pass through.

    python -m benchmarks.speed.chain

It counts the package's own functions (including their comprehensions), not those of Avalanche, PyTorch and timm.
The mini-batch is a mini-experience of ten digits, through ``F2OCLStrategy.train`` without metrics and ``model.learn``.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from avalanche.benchmarks import split_online_stream

import avalanche_f2ocl
from avalanche_f2ocl import F2OCLStrategy, class_incremental_stream

PACKAGE = str(Path(avalanche_f2ocl.__file__).parent)


def chain(call: Callable[[], object]) -> list[tuple[str, str]]:
    """File and function of each call within the package, in order."""
    calls: list[tuple[str, str]] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            calls.append((code.co_filename, f"{code.co_firstlineno}:{code.co_name}"))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return calls


def measure(make: Callable[..., F2OCLStrategy] = F2OCLStrategy) -> dict[str, dict[str, int]]:
    """For each activity: calls, functions, files, and how often the next call is in another file."""
    strategy = make(backbone="micro_vit", evaluator=None)
    stream = class_incremental_stream("digits", groups=5, train_per_class=20, test_per_class=4)
    first, second, third = list(split_online_stream([stream.train_stream[0]], 10, shuffle=False))[:3]
    for known in (first, second):
        strategy.train([known], eval_streams=[])
    images, labels = torch.zeros(10, 3, 32, 32, dtype=torch.uint8), [0, 1] * 5
    strategy.model.learn(images, labels)
    ways = {
        "strategy.train": lambda: strategy.train([third], eval_streams=[]),
        "model.learn": lambda: strategy.model.learn(images, labels),
        "model.predict": lambda: strategy.model.predict(images),
    }
    figures = {}
    for name, way in ways.items():
        calls = chain(way)
        changes = sum(one != other for (one, _), (other, _) in zip(calls, calls[1:], strict=False))
        figures[name] = {
            "calls": len(calls),
            "functions": len(set(calls)),
            "files": len({file for file, _ in calls}),
            "changes of file": changes,
        }
    return figures


def main() -> None:
    figures = measure()
    columns = list(figures["model.learn"])
    print("| | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for name, row in figures.items():
        print(f"| {name} | " + " | ".join(str(row[column]) for column in columns) + " |")


if __name__ == "__main__":
    main()
