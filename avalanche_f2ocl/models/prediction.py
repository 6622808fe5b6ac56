"""The parts of a prediction."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor


class Unprompted(NamedTuple):
    """Result of the forward pass without prompts.

    Attributes:
        q: embeddings, ``(B, D)``.
        layers: ``(B, blocks, K, D)`` if the head needs them, see
            :meth:`avalanche_f2ocl.backbone.PromptableViT.encode_layers`; else None.
        early: means of the patches after the first quarter of the blocks, ``(B, D)``, if familiarity needs them.
    """

    q: Tensor
    layers: Tensor | None = None
    early: Tensor | None = None


@dataclass
class Prediction:
    """The parts of a prediction.

    Attributes:
        logits: ``(B, C)``.
        tokens: input of the blocks, ``(B, T, D)``.
        unprompted: result of the pass without prompts; None if nothing needed it.
        key_rows: rows of the retrieved class prompts, nearest key first, ``(B, K)``; None without class prompts.
        pool_rows: rows of the prompts retrieved from a pool that belongs to no class, ``(B, K)``; None without a pool.
        embeddings: embeddings that familiarity is computed from, ``(B, parts, D)``; None without familiarity.
    """

    logits: Tensor
    tokens: Tensor
    unprompted: Unprompted | None = None
    key_rows: Tensor | None = None
    pool_rows: Tensor | None = None
    embeddings: Tensor | None = None
