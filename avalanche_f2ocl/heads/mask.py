"""Logits of classes that may not be predicted."""

from torch import Tensor

MASKED_LOGIT = -1e9
"""Logit of a class that may not be predicted; finite, so that losses on it stay finite."""


def mask_unseen(logits: Tensor, counts: Tensor) -> Tensor:
    """``logits (B, C)``, masked where ``counts (C,)`` is 0."""
    return logits.masked_fill(counts == 0, MASKED_LOGIT)
