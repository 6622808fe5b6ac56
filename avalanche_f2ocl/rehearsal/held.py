"""Everything that an object holds, directly or indirectly: tensors, arrays, images and raw bytes."""

import array
import gc
import io
import types
import warnings
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset
from torchvision.transforms.functional import pil_to_tensor

SEQUENCES = (list, tuple, set, frozenset, deque)
LEAVES = (str, int, float, complex, type(None), np.generic, torch.dtype, torch.device, torch.Size)
NOT_FOLLOWED = (types.ModuleType, types.CodeType, types.FrameType, types.BuiltinFunctionType, io.IOBase)


class Held(NamedTuple):
    """Something held.

    Attributes:
        path: path from the root, as in ``strategy.plugins[3].last['x']``.
        tensor: its values; they share memory with a tensor or an array.
        is_list: whether it was a list of Python numbers.
        is_item: whether it came out of a data set.
    """

    path: str
    tensor: Tensor
    is_list: bool = False
    is_item: bool = False


def held(root: Any, path: str, skip: Collection[str] = ()) -> Iterator[Held]:
    """Everything with values that ``root`` holds, each object once, by a shortest path.

    The search follows attributes, slots, class attributes that are containers or functions, sequences, mappings,
    closures and defaults of functions, bound methods, partials, iterators, gradients, and what an autograd graph has
    saved. Data sets are searched item by item, since a subset refers to the whole set that it is taken from. The search
    does not follow modules, global variables of functions, weak references and files.

    Args:
        root: the object.
        path: name of the object.
        skip: paths that are left out.

    Example:
        >>> [(found.path, len(found.tensor)) for found in held({"a": [torch.ones(2)], "b": b"xyz"}, "x")]
        [("x['b']", 3), ("x['a'][0]", 2)]
    """
    seen: dict[int, Any] = {}  # keeps the objects, so that no id is used twice
    queue = deque([(path, root)])
    while queue:
        path, value = queue.popleft()
        if isinstance(value, (*LEAVES, *NOT_FOLLOWED)) or id(value) in seen or path in skip:
            continue
        seen[id(value)] = value
        tensor = as_tensor(value)
        if tensor is not None:
            yield Held(path, tensor, isinstance(value, (list, tuple)))
        if _is_data_set(value) and hasattr(value, "__len__"):
            for index in range(len(value)):
                yield from _in_item(value[index], f"{path}[{index}]")
        elif tensor is None or isinstance(value, Tensor):
            queue.extend(_children(value, path))


def _is_data_set(value: Any) -> bool:
    """Whether it is a data set of torch's or Avalanche's, the latter by name, so that Avalanche is not imported."""
    return isinstance(value, Dataset) or any(base.__name__ == "AvalancheDataset" for base in type(value).__mro__)


def as_tensor(value: Any) -> Tensor | None:
    """The values of a tensor, array, image, buffer or (nested) list of numbers; None for anything else."""
    if isinstance(value, Tensor):
        value = value.detach()
        if value.layout == torch.sparse_coo:
            return value.coalesce().values()
        return value if value.layout == torch.strided else value.to_dense()
    if isinstance(value, (array.array, memoryview)):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the array may be read-only
            try:
                return torch.from_numpy(value)
            except (TypeError, ValueError):  # long doubles, foreign byte order, negative strides
                return torch.from_numpy(value.astype(np.float64))
    if isinstance(value, Image.Image):
        return pil_to_tensor(value)
    if isinstance(value, (bytes, bytearray)) and len(value):
        return torch.frombuffer(bytearray(value), dtype=torch.uint8)
    if isinstance(value, (list, tuple)) and _is_numbers(value):
        return torch.tensor(value, dtype=torch.float64)
    return None


def _is_numbers(value: list | tuple) -> bool:
    first: Any = value
    while isinstance(first, (list, tuple)) and len(first):
        first = first[0]
    if not isinstance(first, (int, float)):
        return False
    try:
        return np.asarray(value).dtype.kind in "iuf"
    except (ValueError, TypeError, RuntimeError):  # ragged, or not numbers alone
        return False


def _in_item(value: Any, path: str) -> Iterator[Held]:
    tensor = as_tensor(value)
    if tensor is not None:
        yield Held(path, tensor, is_item=True)
    elif isinstance(value, (Mapping, *SEQUENCES)):
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, part in parts:
            yield from _in_item(part, f"{path}[{key!r}]")


def _children(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, type):
        containers = (*SEQUENCES, dict, Tensor, np.ndarray)
        for name, item in list(vars(value).items()) if value is not Tensor else ():
            item = getattr(item, "__func__", item)  # of static and class methods
            if isinstance(item, types.FunctionType) or (isinstance(item, containers) and not name.startswith("__")):
                yield f"{path}.{name}", item
        return
    if isinstance(value, types.FunctionType):
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            yield f"{path}.<closure>.{name}", cell
        for name in ("__defaults__", "__kwdefaults__", "__dict__"):
            if part := getattr(value, name):
                yield f"{path}.{name}", part
        return
    if isinstance(value, types.CellType):
        yield from ((path, item) for item in gc.get_referents(value))
        return
    if isinstance(value, Mapping):
        for number, (key, item) in enumerate(list(value.items())):
            name = repr(key) if isinstance(key, (str, int)) else f"<{type(key).__name__} {number}>"
            yield f"{path}[{name}]", item
            yield f"{path}.<key {number}>", key
    elif isinstance(value, SEQUENCES):
        yield from ((f"{path}[{i}]", item) for i, item in enumerate(value))
    elif isinstance(value, np.ndarray):  # of objects
        yield from ((f"{path}[{i}]", item) for i, item in enumerate(value.ravel()))
    attributes = getattr(value, "__dict__", {})
    for name, item in list(attributes.items()):
        if name in ("_parameters", "_buffers", "_modules") and isinstance(value, torch.nn.Module):
            yield from ((f"{path}.{key}", part) for key, part in item.items())
        else:
            yield f"{path}.{name}", item
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name) and not name.startswith("__"):
                yield f"{path}.{name}", getattr(value, name)
        yield kind.__name__, kind
    if isinstance(value, Tensor):
        yield f"{path}.grad", value.grad if value.is_leaf else None
        yield f"{path}.grad_fn", value.grad_fn
    elif hasattr(value, "next_functions"):
        yield from _graph(value, path)
    elif not isinstance(value, Mapping):
        # Parts that have no name in Python: those of partials, bound methods and iterators.
        yield from ((path, item) for item in gc.get_referents(value) if item is not attributes)


def _graph(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name in dir(node):
        if name.startswith("_saved_") or name in ("saved_tensors", "variable"):
            try:
                yield f"{path}.{name}", getattr(node, name)
            except RuntimeError:  # freed by the backward pass
                pass
    yield f"{path}.next_functions", [function for function, _ in node.next_functions]
