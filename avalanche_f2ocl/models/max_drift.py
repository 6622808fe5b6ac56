"""The option ``max_drift``: how far the steps of a prompt move embeddings, which decides when the prompt stops."""

import torch
from torch import Tensor


def relative_move(before: Tensor, after: Tensor) -> Tensor:
    """How far a step has moved embeddings, as a share of their spread.

    Args:
        before, after: embeddings of the same mini-batch before and after the step, ``(B, D)``.

    Returns:
        The root mean square of the distances moved, divided by the root mean square distance from the mini-batch's
        mean before the step, or by the embedding's length if there is only one; scalar.

    Example:
        >>> before = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
        >>> relative_move(before, before + torch.tensor([0.0, 0.5])).item()
        0.5
    """
    centre = before.mean(0) if len(before) > 1 else torch.zeros_like(before[0])
    spread = (before - centre).square().sum(1).mean()
    tiny = torch.finfo(before.dtype).tiny
    return ((after - before).square().sum(1).mean() / spread.clamp(min=tiny)).sqrt()
