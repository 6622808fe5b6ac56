"""What :mod:`benchmarks.gpu.pack` packed, made ready for use. Standard library only."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

MANIFEST = "1/manifest.json"
"""In the first folder: by file its pieces and SHA-256."""
READY = "ready"
"""Folder beside the packed ones."""


class Unpacked(NamedTuple):
    """Paths; None of what was not packed.

    Attributes:
        site: for PYTHONPATH.
        data: CIFAR-100.
        weights: of the ViT-Ti.
    """

    site: str
    data: str | None
    weights: str | None


def unpack(folder: Path) -> Unpacked:
    """Puts files together and installs wheels, once.

    Args:
        folder: with ``1``, ``2`` and so on in it.

    Raises:
        FileNotFoundError: a piece has not come.
        ValueError: a file is not what it was.
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
    """The file of its pieces, written anew unless it is there."""
    if path.exists() and _sha256(path) == about["sha256"]:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join((folder / piece).read_bytes() for piece in about["pieces"]))
    if _sha256(path) != about["sha256"]:
        raise ValueError(f"{path.name}: its pieces in {folder} are not what was packed")
    return path


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
