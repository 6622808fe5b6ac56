"""What every part gets, and where its results go."""

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
    """Of one part.

    Args:
        out: file for the results.
        device: that is asked.
        small: whether to do as little as shows that it works, on any device.
        data: zip or folder with CIFAR-100; None if there is none.
        weights: of ``vit_tiny_patch16_224``; None if there are none.
    """

    out: Path
    device: torch.device
    small: bool = False
    data: str | None = None
    weights: str | None = None

    @classmethod
    def of(cls, argv: list[str] | None = None) -> "Setting":
        """From a part's command line."""
        parser = argparse.ArgumentParser()
        parser.add_argument("--out", type=Path, required=True)
        parser.add_argument("--device")
        parser.add_argument("--small", action="store_true")
        parser.add_argument("--data")
        parser.add_argument("--weights")
        args = parser.parse_args(argv)
        return cls(args.out, default_device(args.device), args.small, args.data, args.weights)


class Results(dict[str, Any]):
    """Results by name, in a JSON file as soon as they are there.

    Args:
        path: of the file.
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
    """What a function gives, or what stopped it, so that a row that fails leaves the others."""
    try:
        return function(*args)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}
