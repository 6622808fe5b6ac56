"""The folder for downloads: Avalanche's, found without importing Avalanche, which takes seconds."""

import json
import sys
from pathlib import Path


def data_folder(name: str) -> Path:
    """The folder of a data set, as Avalanche gives it if imported, and otherwise as its configuration file does.

    Args:
        name: name of the data set.

    Example:
        >>> data_folder("cifar100").name
        'cifar100'
    """
    if avalanche := sys.modules.get("avalanche.benchmarks.datasets.dataset_utils"):
        return Path(avalanche.default_dataset_location(name))
    settings = Path("~/.avalanche/config.json").expanduser()
    location = json.loads(settings.read_text())["dataset_location"] if settings.exists() else "~/.avalanche/data"
    return Path(location).expanduser() / name
