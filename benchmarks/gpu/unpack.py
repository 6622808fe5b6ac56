"""Unpacks what :mod:`benchmarks.gpu.pack` packed. It uses only the standard library."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

MANIFEST = "1/manifest.json"
"""A file in the first folder that lists for each file its pieces and SHA-256."""
READY = "ready"
"""Folder for unpacked files, next to the packed folders."""


class Unpacked(NamedTuple):
    """Paths; None for what was not packed.

    Attributes:
        site: folder for PYTHONPATH.
        data: CIFAR-100.
        weights: weights of the ViT-Ti.
    """

    site: str
    data: str | None
    weights: str | None


def unpack(folder: Path) -> Unpacked:
    """Joins files and installs wheels, once.

    Args:
        folder: the folder that contains ``1``, ``2`` and so on.

    Raises:
        FileNotFoundError: a piece is missing.
        ValueError: a file has changed.
    """
    manifest = json.loads((folder / MANIFEST).read_text())
    absent = [piece for about in manifest.values() for piece in about["pieces"] if not (folder / piece).exists()]
    if absent:
        raise FileNotFoundError(f"{folder} lacks {', '.join(absent)}: bring all of its folders")
    ready = folder.resolve() / READY
    found = {name: _join(folder, about, ready / name) for name, about in manifest.items()}
    of_kind = {kind: [str(path) for name, path in found.items() if name.startswith(f"{kind}/")] for kind in KINDS}
    site = ready / "site"
    if of_kind["wheels"] and not site.exists():
        unfinished = site.with_name("site.tmp")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
        subprocess.run([*pip, "--upgrade", "--target", str(unfinished), *of_kind["wheels"]], check=True)
        os.replace(unfinished, site)
    return Unpacked(str(site), *(next(iter(of_kind[kind]), None) for kind in ("data", "weights")))


KINDS = ("wheels", "data", "weights")


def _join(folder: Path, about: dict, path: Path) -> Path:
    """Joins a file's pieces, unless the file exists already."""
    if path.exists() and _sha256(path) == about["sha256"]:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join((folder / piece).read_bytes() for piece in about["pieces"]))
    if _sha256(path) != about["sha256"]:
        raise ValueError(f"{path.name}: its pieces in {folder} are not what was packed")
    return path


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
