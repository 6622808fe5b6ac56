"""The solution of a linear classifier, and how it enters and leaves a ``state_dict``."""

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass

import torch
from torch import Tensor

_NAMES = ("weight", "bias", "scale", "facts", "settings")

Settings = tuple[float, float, float]
"""The settings that determine a head's solution, as numbers: its kind, its penalty or shrinkage, its priors."""


@dataclass
class Solution:
    """A linear classifier with outputs :math:`(W x + b) / s`.

    Attributes:
        weight: W, ``(C, P)`` float64.
        bias: b, ``(C,)`` float64.
        scale: s, ``(C,)`` float64.
        facts: numbers that the head needs to know about it later.
        inverse: the inverse that the head keeps it current with, ``(P, P)``; not saved.

    Example:
        >>> one = torch.ones(1, 1).double()
        >>> Solution(one * 3, one[0], one[0] * 2).outputs(one).tolist()
        [[2.0]]
    """

    weight: Tensor
    bias: Tensor
    scale: Tensor
    facts: tuple[float, ...] = ()
    inverse: Tensor | None = None

    def __post_init__(self) -> None:
        # A product with a transposed view may round differently from one with a tensor that comes from a file.
        self.weight = self.weight.contiguous()

    def outputs(self, features: Tensor) -> Tensor:
        """The outputs ``(B, C)`` for features ``(B, P)`` float64."""
        return (features @ self.weight.T + self.bias) / self.scale

    def linear(self) -> tuple[Tensor, Tensor]:
        """Weight ``(C, P)`` and bias ``(C,)`` of the outputs."""
        return self.weight / self.scale.unsqueeze(1), self.bias / self.scale

    def tensors(self, settings: Settings) -> dict[str, Tensor]:
        """The tensors for a ``state_dict``, including the settings of the head."""
        numbers = [torch.tensor(values, dtype=torch.float64) for values in (self.facts, settings)]
        return dict(zip(map(_key, _NAMES), (self.weight, self.bias, self.scale, *numbers), strict=True))

    def moved(self, fn: Callable[[Tensor], Tensor]) -> "Solution":
        """A copy with ``fn`` applied to its tensors, without the inverse."""
        return Solution(fn(self.weight), fn(self.bias), fn(self.scale), self.facts)


def solution_of(tensors: dict[str, Tensor], settings: Settings, facts: int, device: torch.device) -> Solution | None:
    """The solution in tensors from :func:`take_solution`; None without any, or if settings or facts differ."""
    if not tensors or tuple(tensors[_key("settings")].tolist()) != settings or len(tensors[_key("facts")]) != facts:
        return None
    weight, bias, scale = (tensors[_key(name)].detach().to(device, copy=True) for name in _NAMES[:3])
    return Solution(weight, bias, scale, tuple(tensors[_key("facts")].tolist()))


def take_solution(state_dict: MutableMapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Removes from a ``state_dict`` the tensors that :meth:`Solution.tensors` put in under a prefix, and returns them.

    Example:
        >>> state = {"head.solution_bias": torch.zeros(1), "head.sums": torch.zeros(1)}
        >>> list(take_solution(state, "head.")), list(state)
        (['solution_bias'], ['head.sums'])
    """
    keys = [_key(name) for name in _NAMES if prefix + _key(name) in state_dict]
    return {key: state_dict.pop(prefix + key) for key in keys}


def solution_problem(tensors: dict[str, Tensor], classes: int, width: int) -> str | None:
    """Says in words what is wrong with the tensors from :func:`take_solution`; None if nothing is, or without any.

    Args:
        tensors: tensors from :func:`take_solution`.
        classes: number of classes; the solution may lack classes that came after it was made.
        width: number P of features.
    """
    if not tensors:
        return None
    if missing := [key for key in map(_key, _NAMES) if key not in tensors]:
        return f"a solution lacks {', '.join(missing)}"
    rows = min(classes, len(tensors["solution_weight"]) if tensors["solution_weight"].dim() else 0)
    facts = tensors["solution_facts"].numel()  # their number depends on the head
    for name, shape in zip(_NAMES, ((rows, width), (rows,), (rows,), (facts,), (3,)), strict=True):
        tensor = tensors[_key(name)]
        if tuple(tensor.shape) != shape or tensor.dtype != torch.float64:
            return f"{_key(name)} is {tensor.dtype} {tuple(tensor.shape)}, expected torch.float64 {shape}"
    return None


def _key(name: str) -> str:
    return f"solution_{name}"
