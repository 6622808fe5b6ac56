"""One file of tensors (safetensors) and plain values (JSON), written whole or not at all, read without running code."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from avalanche_f2ocl.ranks import is_first

_VALUES, _DIGEST = "values", "sha256"
_SYNC_FOLDERS = os.name != "nt"  # Windows opens no folders


def write_safe_file(path: str | Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Writes a file so that at any moment the path holds either the whole old file or the whole new one.

    If there are several processes, the first writes and the others do nothing.

    Args:
        path: path of the file; its folder must exist. ``<path>.<process id>.tmp`` is used as a temporary file.
        tensors: tensors by name, on any device.
        values: values that JSON can hold.

    Raises:
        OSError: the file cannot be written; an old file is left as it was.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = Path(folder.name) / "a.safetensors"
        >>> write_safe_file(path, {"x": torch.ones(2)}, {"n": 3})
        >>> read_safe_file(path)
        ({'x': tensor([1., 1.])}, {'n': 3})
    """
    if not is_first():
        return
    path = Path(path)
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(values)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        save_file(tensors, unfinished, {_VALUES: text, _DIGEST: _digest(tensors, text)})
        unfinished.chmod(path.stat().st_mode & 0o777 if path.exists() else _usual_mode())  # safetensors makes it 0600
        _to_disk(unfinished)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    if _SYNC_FOLDERS:
        _to_disk(path.parent)


def read_safe_file(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads the tensors, onto the CPU, and the values of a file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged or was not written by :func:`write_safe_file`.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {str(path)!r}")
    try:
        with safe_open(path, "pt") as file:
            head = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        text, digest = head[_VALUES], head[_DIGEST]
        values = json.loads(text)
    except (SafetensorError, KeyError, ValueError, RuntimeError, MemoryError) as error:
        message = f"{str(path)!r} is damaged or was not written by avalanche_f2ocl ({type(error).__name__}: {error})"
        raise ValueError(message) from error
    if digest != _digest(tensors, text):
        raise ValueError(f"{str(path)!r} is damaged: its contents do not match its checksum")
    return tensors, values


def tensors_sha256(tensors: dict[str, Tensor]) -> str:
    """Checksum over names, dtypes, shapes and values."""
    return _digest(tensors, "")


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _usual_mode() -> int:
    """Permissions of a new file."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _to_disk(path: Path) -> None:
    """Waits until a file's contents, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
