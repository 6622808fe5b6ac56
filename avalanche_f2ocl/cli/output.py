"""Checks that a command may and can write its file, before any work is done."""

import shutil
import tempfile
from pathlib import Path

from avalanche_f2ocl.models.saving import SavedModel

_MARGIN = 1 << 24  # bytes left free for others


def check_place(path: Path, replace: bool, go_on: bool = True) -> None:
    """Checks that a file can be written.

    Args:
        path: path of the file.
        replace: whether an existing file may be replaced.
        go_on: whether the command has ``--from``.

    Raises:
        OSError: the folder does not exist or cannot be written to, the path is itself a folder, or there is a file
            that must not be replaced.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{str(path)!r}: there is no folder {str(path.parent)!r}")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r}: is a folder; give the name of a file")
    if path.exists() and not replace:
        hint = f"--from {path} continues with it, " if go_on else ""
        raise FileExistsError(f"{str(path)!r} exists already; {hint}--overwrite replaces it")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise OSError(f"{str(path)!r}: nothing can be written to {str(path.parent)!r} ({error})") from error


def check_space(path: Path, model: SavedModel, new_classes: int, backbone: bool) -> None:
    """Raises ``OSError`` unless the disk has room for the model's file after ``new_classes`` more classes.

    The old file stays until the new one is whole, so its space does not count as free.
    """
    needed = model.saved_bytes(new_classes, backbone) + _MARGIN
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise OSError(
            f"{str(path)!r}: needs {needed / 1e6:.0f} MB, and {str(path.parent)!r} has {free / 1e6:.0f} MB left"
        )
