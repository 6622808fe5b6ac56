"""The settings of every part, and where its results go."""

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from avalanche_f2ocl.backbone.devices import default_device


@dataclass(frozen=True)
class Setting:
    """The setting of one part.

    Args:
        out: file for the results.
        device: the device to measure.
        small: whether to do only as much as shows that the part works, on any device.
        data: zip or folder with CIFAR-100; None if there is none.
        weights: weights of ``vit_tiny_patch16_224``; None if there are none.
    """

    out: Path
    device: torch.device
    small: bool = False
    data: str | None = None
    weights: str | None = None

    @classmethod
    def of(cls, argv: list[str] | None = None) -> "Setting":
        """The setting from a part's command line."""
        parser = argparse.ArgumentParser()
        parser.add_argument("--out", type=Path, required=True)
        parser.add_argument("--device")
        parser.add_argument("--small", action="store_true")
        parser.add_argument("--data")
        parser.add_argument("--weights")
        args = parser.parse_args(argv)
        return cls(args.out, default_device(args.device), args.small, args.data, args.weights)


class Results(dict[str, Any]):
    """Results by name, each written to a JSON file as soon as it is known.

    Args:
        path: path of the file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        print(name, value, flush=True)
        unfinished = self.path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(self, indent=1) + "\n")
        os.replace(unfinished, self.path)


def tried(function: Any, *args: Any) -> Any:
    """The result of a function or its error, so that a row that fails does not stop the others."""
    try:
        return function(*args)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}
