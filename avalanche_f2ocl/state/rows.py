"""Modules whose tensors have one row per class and grow as classes appear."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn


class Undoable(nn.Module):
    """Part of a model that an :class:`avalanche_f2ocl.state.undo.Undo` block can restore.

    Attributes:
        in_block: whether such a block is open.
    """

    in_block = False

    def undo_growth(self) -> Callable[[], None]:
        """A function that undoes additions; requested when the block begins."""
        return nothing

    def undo_writes(self, rows: Tensor) -> Callable[[], None]:
        """A function that restores the present values of ``rows (P,)`` int64; requested before they change."""
        return nothing

    def begin_block(self) -> None:
        """Called when the block begins, for parts that delay changes instead of noting values."""

    def end_block(self, keep: bool) -> None:
        """Called when the block ends: delayed changes are made if ``keep``, and dropped otherwise."""


def move_only(fn: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Reduces a conversion such as ``module.to`` or ``.float()`` to the move to a device, so that sums stay exact."""

    def moved(tensor: Tensor) -> Tensor:
        result = fn(tensor)
        return result if result.dtype == tensor.dtype else tensor.to(result.device)

    return moved


def nothing() -> None:
    """Does nothing."""


class ClassRows(Undoable):
    """Base class of everything that is learned per class: ids, prompts, keys, head sums.

    Tensors are registered with :meth:`register_rows` and hold ``capacity >= num_rows`` rows, so that a
    new class only rarely needs a copy. Growth never moves or changes rows. A trainable
    tensor stays the same ``Parameter`` object, so an optimiser that holds it need not be told.

    ``state_dict`` holds the used rows only; loading takes the number of rows from the file.

    Attributes:
        num_rows: number of classes so far.
        row_names: names of the tensors that have a row per class.
        sum_names: names of those tensors that are sums over a class's samples.
    """

    MIN_CHUNK = 64

    def __init__(self) -> None:
        super().__init__()
        self.num_rows = 0
        self.row_names: list[str] = []
        self.sum_names: list[str] = []

    def register_rows(
        self,
        name: str,
        *shape: int,
        dtype: torch.dtype = torch.float32,
        trainable: bool = False,
        summed: bool = False,
    ) -> None:
        """Adds a tensor of shape ``(capacity, *shape)`` under ``name``; new rows are zero.

        Args:
            name, shape, dtype: name, shape of a row and dtype of the tensor.
            trainable: whether the tensor is a parameter.
            summed: whether a row is a sum over its class's samples; such rows are added if two classes become one.
        """
        tensor = torch.zeros(0, *shape, dtype=dtype)
        if trainable:
            self.register_parameter(name, nn.Parameter(tensor))
        else:
            self.register_buffer(name, tensor)
        self.row_names.append(name)
        if summed:
            self.sum_names.append(name)

    def used(self, name: str) -> Tensor:
        """The used rows of a registered tensor, a view of shape ``(num_rows, ...)``."""
        return getattr(self, name)[: self.num_rows]

    def add_rows(self, count: int) -> slice:
        """Adds ``count`` zero rows to every registered tensor.

        Returns:
            The slice of the new rows.
        """
        new = slice(self.num_rows, self.num_rows + count)
        for name in self.row_names:
            tensor = getattr(self, name)
            if new.stop > len(tensor):
                # Growing by an eighth keeps both the number of copies and the unused space small at any size.
                chunk = max(self.MIN_CHUNK, len(tensor) // 8)
                self._resize(name, max(new.stop, len(tensor) + chunk))
        self.num_rows = new.stop
        return new

    @torch.no_grad()
    def remove_row(self, row: int) -> None:
        """Removes a row from every registered tensor; later rows move up by one, with unchanged values."""
        for name in self.row_names:
            tensor = getattr(self, name)
            close_gap(tensor, row)
            tensor.grad = None
        self.num_rows -= 1

    @torch.no_grad()
    def merge_row(self, row: int, into: int) -> None:
        """Adds the sums of ``row`` to those of ``into`` and leaves zeros; tensors that are no sums stay unchanged."""
        for name in self.sum_names:
            tensor = getattr(self, name)
            tensor[into] += tensor[row]
            tensor[row] = 0

    def trainable(self, name: str, rows: Tensor) -> Tensor:
        """Some rows of a parameter, to be trained.

        Their gradient arrives in the parameter's ``grad`` as a sparse tensor of only those rows;
        :class:`avalanche_f2ocl.state.row_adam.RowAdam` treats them as the used rows.

        Args:
            name: name of a tensor registered as trainable.
            rows: ``(R,)`` int64, distinct.

        Returns:
            ``(R, ...)``, a leaf.
        """
        parameter = getattr(self, name)
        leaf = parameter.detach()[rows].requires_grad_()
        leaf.register_post_accumulate_grad_hook(lambda leaf: self._collect(name, rows, leaf.grad))
        return leaf

    def freeze(self) -> None:
        """Cuts off spare rows and turns parameters into buffers for good; nothing can be trained afterwards."""
        for name in self.row_names:
            rows = self.used(name).detach().clone()
            self._parameters.pop(name, None)
            self.register_buffer(name, rows)

    def _collect(self, name: str, rows: Tensor, grad: Tensor) -> None:
        parameter = getattr(self, name)
        sparse = torch.sparse_coo_tensor(
            rows.unsqueeze(0), grad, parameter.shape, is_coalesced=True, check_invariants=False
        )
        parameter.grad = sparse if parameter.grad is None else parameter.grad + sparse

    def _resize(self, name: str, capacity: int) -> None:
        old = getattr(self, name)
        kept = min(len(old), capacity)
        tensor = torch.zeros(capacity, *old.shape[1:], dtype=old.dtype, device=old.device)
        tensor[:kept] = old.detach()[:kept]
        if isinstance(old, nn.Parameter):
            old.grad = None
            old.data = tensor
        else:
            setattr(self, name, tensor)

    def undo_growth(self) -> Callable[[], None]:
        """A function that restores the present length of the tensors, with zeros beyond the rows now in use."""
        return partial(self._shrink, self.num_rows, {name: len(getattr(self, name)) for name in self.row_names})

    def undo_writes(self, rows: Tensor) -> Callable[[], None]:
        """A function that restores the present values of ``rows (R,)`` int64 in all buffers."""
        buffers = [name for name in self.row_names if name in self._buffers]
        return partial(self._write, rows, {name: getattr(self, name)[rows] for name in buffers})

    def _write(self, rows: Tensor, values: dict[str, Tensor]) -> None:
        for name, value in values.items():
            getattr(self, name)[rows] = value

    def _shrink(self, num_rows: int, capacities: dict[str, int]) -> None:
        self.num_rows = num_rows
        for name, capacity in capacities.items():
            tensor = getattr(self, name)
            kept = tensor.detach()[:capacity]  # a view, since shrinking must not need memory
            kept[num_rows:] = 0
            if isinstance(tensor, nn.Parameter):
                tensor.grad = None
                tensor.data = kept
            else:
                setattr(self, name, kept)

    def _apply(self, fn, recurse=True):
        return super()._apply(move_only(fn), recurse)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in self.row_names:
            destination[prefix + name] = destination[prefix + name][: self.num_rows]

    def _load_from_state_dict(self, state_dict, prefix, *args):
        saved = {name: state_dict.get(prefix + name) for name in self.row_names}
        fits = all(
            tensor is not None and tensor.shape[1:] == getattr(self, name).shape[1:]
            for name, tensor in saved.items()
        )
        if fits:  # otherwise torch names tensors that are missing or have another shape
            for name, tensor in saved.items():
                self._resize(name, len(tensor))
                self.num_rows = len(tensor)
        super()._load_from_state_dict(state_dict, prefix, *args)


def add_to_rows(table: Tensor, rows: Tensor, values: Tensor) -> None:
    """Adds ``values (B, ...)`` to ``table[rows]`` in place, always in the same order; ``rows (B,)`` int64 may repeat.

    Example:
        >>> table = torch.zeros(2)
        >>> add_to_rows(table, torch.tensor([1, 1]), torch.tensor([2.0, 3.0]))
        >>> table
        tensor([0., 5.])
    """
    if table.device.type == "cpu":
        table.index_add_(0, rows, values)
    else:
        # index_add_ adds in any order on CUDA, so that sums would differ between processes.
        table.index_put_((rows,), values, accumulate=True)


def close_gap(tensor: Tensor, row: int) -> None:
    """Overwrites ``tensor[row]`` by moving later rows up, in place; the last row becomes zero."""
    tensor[row:-1] = tensor[row + 1 :].clone()
    tensor[-1] = 0
