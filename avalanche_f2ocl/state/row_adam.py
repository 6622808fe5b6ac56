"""Adam for tensors whose rows are added, used and left alone at different times."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim import Optimizer

from avalanche_f2ocl.state.rows import close_gap


class StepOptimizer(Protocol):
    """The methods needed of an optimiser: any of torch's, or a placeholder for one."""

    state: Any

    def zero_grad(self) -> None:
        """Clears gradients."""

    def step(self) -> Any:
        """Updates the parameters by their gradients."""


class RowAdam(Optimizer):
    """Adam whose moments and step count live per row (first dimension) of each parameter.

    A row that a step does not use keeps its value, moments and step count bit for bit; a row that is
    used moves as under :class:`torch.optim.Adam` with one parameter per row. With a stacked tensor,
    ordinary Adam would move rows without gradient by their momentum.

    A dense gradient uses the rows in which it is not zero everywhere (finding them takes a pass over the
    tensor, and on CUDA a host synchronisation). A sparse gradient, as made by
    :meth:`avalanche_f2ocl.state.rows.ClassRows.trainable`, names its rows, and a step takes time for those
    rows only. A parameter may gain rows between steps. With ``every_row``, which parameter groups may set, a
    dense gradient uses all rows, as under :class:`torch.optim.Adam`.

    Args:
        params: parameters or parameter groups; each parameter has at least one dimension.
        lr: step size, positive.
        betas: decay rates of the first and second moment, each in [0, 1).
        eps: added to the denominator, positive.
        lr_decay: exponent p >= 0; a row's step number t has the size ``lr / t**p``, where t counts the row's own steps.
        every_row: whether rows with a zero gradient are used, too.

    Raises:
        ValueError: an option is outside its range.

    Example:
        >>> rows = torch.nn.Parameter(torch.zeros(3, 2))
        >>> optimizer = RowAdam([rows], lr=0.1)
        >>> rows[1].sum().backward()
        >>> optimizer.step()
        >>> rows[1].tolist() != [0, 0] and rows[0].tolist() == [0, 0]
        True
    """

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        lr_decay: float = 0.0,
        every_row: bool = False,
    ) -> None:
        if not lr > 0:
            raise ValueError(f"lr={lr!r}: must be positive")
        if not (len(betas) == 2 and all(0 <= beta < 1 for beta in betas)):
            raise ValueError(f"betas={betas!r}: must be two numbers in [0, 1)")
        if not eps > 0:
            raise ValueError(f"eps={eps!r}: must be positive")
        if not lr_decay >= 0:
            raise ValueError(f"lr_decay={lr_decay!r}: must be 0 or more")
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, lr_decay=lr_decay, every_row=every_row))

    @torch.no_grad()
    def step(self, closure=None):
        """Updates the used rows; returns the closure's loss, if there is a closure."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    rows, grad = used_rows(param.grad, group["every_row"])
                    state = self._row_state(param)
                    options: dict[str, Any] = {name: group[name] for name in ("lr", "betas", "eps", "lr_decay")}
                    row_adam(param, rows, grad, **{**state, **options})
        return loss

    def undo_step(self, param: Tensor, rows: Tensor | slice) -> Callable[[], None]:
        """A function that restores the present length of the state of ``param`` and its present values in ``rows``."""
        saved = {}
        for name, tensor in self.state.get(param, {}).items():
            # Rows that the state does not have yet are cut off again, so any row may take their place.
            known = rows if isinstance(rows, slice) else rows.clamp(max=len(tensor) - 1)
            saved[name] = len(tensor), known, tensor[known].clone()
        return partial(self._restore_state, param, saved)

    def _restore_state(self, param: Tensor, saved: dict) -> None:
        state = self.state.pop(param, {})
        for name, (length, rows, values) in saved.items():
            self.state[param][name] = kept = state[name][:length]
            kept[rows] = values

    def _row_state(self, param: Tensor) -> dict[str, Tensor]:
        state = self.state[param]
        if not state:
            state["exp_avg"] = torch.zeros_like(param)
            state["exp_avg_sq"] = torch.zeros_like(param)
            state["step"] = torch.zeros(len(param), dtype=torch.float64, device=param.device)
        missing = len(param) - len(state["step"])
        if missing > 0:
            for name, tensor in state.items():
                state[name] = torch.cat([tensor, tensor.new_zeros(missing, *tensor.shape[1:])])
        return state


def move_state(optimizer: StepOptimizer, device: torch.device) -> None:
    """Moves an optimiser's state to the device of its parameters.

    Args:
        optimizer: :class:`RowAdam`, or any optimiser whose state is elementwise.
        device: device of the parameters.
    """
    for state in optimizer.state.values():
        for name, tensor in state.items():
            if isinstance(tensor, Tensor) and tensor.dim() > 0:
                state[name] = tensor.to(device)


def remove_row(optimizer: StepOptimizer, param: Tensor, row: int) -> None:
    """Removes a row from an optimiser's state of a parameter; later rows move up by one.

    Args:
        optimizer: :class:`RowAdam`, or any optimiser whose state is elementwise, such as SGD's momentum.
        param: ``(C, ...)``, whether the optimiser holds it or not.
        row: index below C; a row added after the last step has no state yet.
    """
    for tensor in optimizer.state.get(param, {}).values():
        if isinstance(tensor, Tensor) and tensor.dim() > 0 and row < len(tensor):
            close_gap(tensor, row)


def forget_rows(optimizer: StepOptimizer, param: Tensor, rows: Tensor) -> None:
    """Sets an optimiser's state of some rows of a parameter to zero, as for rows without a step.

    Args:
        optimizer, param: those of :func:`remove_row`.
        rows: ``(R,)`` int64; rows added after the last step have no state yet.
    """
    for tensor in optimizer.state.get(param, {}).values():
        if isinstance(tensor, Tensor) and tensor.dim() > 0:
            tensor[rows[rows < len(tensor)]] = 0


def used_rows(grad: Tensor, every_row: bool = False) -> tuple[Tensor, Tensor]:
    """Rows that a gradient uses and their gradients: ``(R,)`` int64 and ``(R, ...)``.

    Args:
        grad: the gradient, dense, or sparse in its first dimension only.
        every_row: whether a dense gradient uses all rows.
    """
    if grad.is_sparse:
        grad = grad.coalesce()  # does nothing, and does not synchronise, if rows are known to be distinct
        return grad.indices()[0], grad.values()
    if every_row:
        return torch.arange(len(grad), device=grad.device), grad
    rows = grad.flatten(1).any(1).nonzero().squeeze(1) if grad.dim() > 1 else grad.nonzero().squeeze(1)
    return rows, grad[rows]


def row_adam(
    param: Tensor,
    rows: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    step: Tensor,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    lr_decay: float = 0.0,
) -> None:
    """Adam's update of ``param[rows]`` in place, with the moments and steps of those rows.

    Args:
        param, exp_avg, exp_avg_sq: ``(C, ...)``.
        rows: ``(R,)`` int64, distinct.
        grad: ``(R, ...)``.
        step: number of updates of each row so far, ``(C,)`` float64.
        lr, betas, eps, lr_decay: those of :class:`RowAdam`.

    Source: Kingma and Ba, Adam, 2015, Algorithm 1.
    """
    beta1, beta2 = betas
    count = step[rows] + 1
    first = exp_avg[rows].lerp(grad, 1 - beta1)
    second = exp_avg_sq[rows].mul(beta2).addcmul(grad, grad, value=1 - beta2)
    step[rows], exp_avg[rows], exp_avg_sq[rows] = count, first, second

    per_row = (-1,) + (1,) * (grad.dim() - 1)
    step_size = (lr / count**lr_decay / (1 - beta1**count)).view(per_row)
    root = (1 - beta2**count).sqrt().view(per_row)
    denominator = (second.sqrt() / root.to(grad.dtype)).add(eps)
    param[rows] = param[rows] - step_size.to(grad.dtype) * first / denominator
