"""What a linear classifier was solved to, and its way into a ``state_dict`` and out of it."""

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass

import torch
from torch import Tensor

_NAMES = ("weight", "bias", "scale", "facts", "settings")

Settings = tuple[float, float, float]
"""What a head solves for, in numbers: its kind, its penalty or shrinkage, its priors."""


@dataclass
class Solution:
    """A linear classifier: outputs :math:`(W x + b) / s`.

    Attributes:
        weight: W, ``(C, P)`` float64.
        bias: b, ``(C,)`` float64.
        scale: s, ``(C,)`` float64.
        facts: numbers that a head wants to know of it later.
        inverse: what a head keeps it current with, ``(P, P)``; not saved.

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
        # A product with a transposed view may be rounded otherwise than with what comes back from a file.
        self.weight = self.weight.contiguous()

    def outputs(self, features: Tensor) -> Tensor:
        """Of features ``(B, P)`` float64, ``(B, C)``."""
        return (features @ self.weight.T + self.bias) / self.scale

    def linear(self) -> tuple[Tensor, Tensor]:
        """Weight ``(C, P)`` and bias ``(C,)`` of the outputs."""
        return self.weight / self.scale.unsqueeze(1), self.bias / self.scale

    def tensors(self, settings: Settings) -> dict[str, Tensor]:
        """For a ``state_dict``, with the settings of the head that it is of."""
        numbers = [torch.tensor(values, dtype=torch.float64) for values in (self.facts, settings)]
        return dict(zip(map(_key, _NAMES), (self.weight, self.bias, self.scale, *numbers), strict=True))

    def moved(self, fn: Callable[[Tensor], Tensor]) -> "Solution":
        """With ``fn`` done to its tensors, without the inverse."""
        return Solution(fn(self.weight), fn(self.bias), fn(self.scale), self.facts)


def solution_of(tensors: dict[str, Tensor], settings: Settings, facts: int, device: torch.device) -> Solution | None:
    """From what :func:`take_solution` took; None if that is nothing, or of other settings or facts."""
    if not tensors or tuple(tensors[_key("settings")].tolist()) != settings or len(tensors[_key("facts")]) != facts:
        return None
    weight, bias, scale = (tensors[_key(name)].detach().to(device, copy=True) for name in _NAMES[:3])
    return Solution(weight, bias, scale, tuple(tensors[_key("facts")].tolist()))


def take_solution(state_dict: MutableMapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Takes out of a ``state_dict`` what :meth:`Solution.tensors` put in under a prefix.

    Example:
        >>> state = {"head.solution_bias": torch.zeros(1), "head.sums": torch.zeros(1)}
        >>> list(take_solution(state, "head.")), list(state)
        (['solution_bias'], ['head.sums'])
    """
    keys = [_key(name) for name in _NAMES if prefix + _key(name) in state_dict]
    return {key: state_dict.pop(prefix + key) for key in keys}


def solution_problem(tensors: dict[str, Tensor], classes: int, width: int) -> str | None:
    """What is wrong with what :func:`take_solution` took, in words; None if nothing is, or there is nothing.

    Args:
        tensors: the same.
        classes: that there are; those that came since it was solved have no part in it.
        width: P.
    """
    if not tensors:
        return None
    if missing := [key for key in map(_key, _NAMES) if key not in tensors]:
        return f"a solution lacks {', '.join(missing)}"
    rows = min(classes, len(tensors["solution_weight"]) if tensors["solution_weight"].dim() else 0)
    facts = tensors["solution_facts"].numel()  # as many as the head that it is of has
    for name, shape in zip(_NAMES, ((rows, width), (rows,), (rows,), (facts,), (3,)), strict=True):
        tensor = tensors[_key(name)]
        if tuple(tensor.shape) != shape or tensor.dtype != torch.float64:
            return f"{_key(name)} is {tensor.dtype} {tuple(tensor.shape)}, expected torch.float64 {shape}"
    return None


def _key(name: str) -> str:
    return f"solution_{name}"
