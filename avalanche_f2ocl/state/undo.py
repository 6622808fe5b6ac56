"""Undo, by which a mini-batch is learned as a whole or not at all."""

import traceback
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from avalanche_f2ocl.state.row_adam import RowAdam
from avalanche_f2ocl.state.rows import Undoable


class Undo:
    """Undoes what was learned inside a ``with`` block if the block raises an exception.

    It notes rows before they change, never a whole table: the table's length at the start, the rows of the
    mini-batch's classes (:meth:`save_rows`), and at every optimiser step the rows that the step will use. Gradients are
    cleared when something is undone.

    Args:
        parts: the parts of the model that learn.
        optimizer: the optimiser whose steps are noted; None, or an object that is no torch optimiser, has none.

    Raises:
        RuntimeError: on entering, one of the parts is already in another such block.

    Example:
        >>> from avalanche_f2ocl.state.class_means import ClassMeans
        >>> means = ClassMeans(dim=1)
        >>> with Undo([means]):
        ...     _ = means.add_rows(1)
        >>> try:
        ...     with Undo([means]) as undo:
        ...         _ = means.add_rows(1)
        ...         undo.save_rows(torch.tensor([0]))
        ...         means.update(torch.ones(1, 1), torch.tensor([0]))
        ...         raise OSError
        ... except OSError:
        ...     means.num_rows, means.counts[:2].tolist()
        (1, [0, 0])
    """

    def __init__(self, parts: Iterable[Undoable], optimizer: Any = None) -> None:
        self._parts, self._optimizer = list(parts), optimizer
        self._log: list[Callable[[], None]] = []

    def save_attributes(self, owner: object, *names: str) -> None:
        """Notes attributes that are about to be replaced (changes in place are not undone)."""
        for name in names:
            self._log.append(partial(setattr, owner, name, getattr(owner, name)))

    def save_rows(self, rows: Tensor) -> None:
        """Notes the rows ``(P,)`` int64 of all tensors that are no parameters."""
        for part in self._parts:
            self._log.append(part.undo_writes(rows))

    @torch.no_grad()
    def save_step(self, optimizer: Optimizer, *_: Any) -> None:
        """Notes what the coming step will change: those rows of parameters that their gradients use."""
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    rows = param.grad._indices()[0] if param.grad.is_sparse else slice(None)
                    self._log.append(partial(_write, param, rows, param[rows].clone()))
                    if isinstance(optimizer, RowAdam):
                        self._log.append(optimizer.undo_step(param, rows))
                    else:
                        self._log.append(partial(_put, optimizer.state, param, deepcopy(optimizer.state.get(param))))

    def __enter__(self) -> "Undo":
        if any(part.in_block for part in self._parts):
            raise RuntimeError(
                "a mini-batch is being learned already: model.learn() cannot be called while another one is learned, "
                "for example in a callback of its strategy"
            )
        for part in self._parts:
            part.in_block = True
        self._log.extend(part.undo_growth() for part in self._parts)
        for part in self._parts:
            part.begin_block()
        if isinstance(self._optimizer, Optimizer):
            self._hook = self._optimizer.register_step_pre_hook(self.save_step)
        return self

    def __exit__(self, kind, error, trace) -> None:
        if isinstance(self._optimizer, Optimizer):
            self._hook.remove()
        for part in self._parts:
            part.in_block = False
            part.end_block(keep=error is None)
        if error is not None:
            if isinstance(error, torch.cuda.OutOfMemoryError):
                traceback.clear_frames(trace)  # the frames hold the memory that ran out
            while self._log:
                self._log.pop()()
            if self._optimizer is not None:
                self._optimizer.zero_grad()
        self._log.clear()


def _write(param: Tensor, rows: Tensor | slice, values: Tensor) -> None:
    param.detach()[rows] = values


def _put(state: dict, param: Tensor, saved: dict | None) -> None:
    state.pop(param, None)
    if saved is not None:
        state[param] = saved
