"""A remedy for attention whose gradient is slow."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode


class Float32Attention(TorchFunctionMode):
    """A context in which ``scaled_dot_product_attention`` computes in float32 and returns its inputs' dtype.

    On a CPU its backward pass takes five times as long in bfloat16 as in float32, which is half of a training step at
    70 tokens. The matrix products around it stay in bfloat16.

    Example:
        >>> x = torch.ones(1, 1, 2, 4, dtype=torch.bfloat16)
        >>> with Float32Attention():
        ...     F.scaled_dot_product_attention(x, x, x).dtype
        torch.bfloat16
    """

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is F.scaled_dot_product_attention:
            query, key, value, *rest = args
            attended = func(query.float(), key.float(), value.float(), *rest, **(kwargs or {}))
            return attended.to(query.dtype)
        return func(*args, **(kwargs or {}))


def gradient_attention(tokens: Tensor) -> AbstractContextManager:
    """A context that makes attention fast in a pass over ``tokens`` whose gradient is needed."""
    slow = tokens.device.type == "cpu" and tokens.dtype == torch.bfloat16
    return Float32Attention() if slow else nullcontext()
