"""What the parts of one training step share about their mini-batch."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.backbone.vit import PromptableViT


class OnlineBatch:
    """One mini-batch in training; nothing of it outlives the step.

    Args:
        backbone: encodes the images.
        images: ``(B, C, H, W)``.
        rows: rows of the samples' classes, ``(B,)`` int64 on the CPU.
        device: of the index tensors.

    Attributes:
        images: ``(B, C, H, W)``.
        host_rows: ``(B,)`` int64 on the CPU.
        rows: the same on the device.
        class_rows: the distinct rows, ``(P,)`` int64.
        local: each sample's index into ``class_rows``, ``(B,)`` int64.
        initial: ``(B, D)``, each sample's stand-in for the prototype of a class that is new in this
            mini-batch; set by the first pass.
        elected: row of the prompt that the mini-batch is encoded under, ``(1,)`` int64.
        before: mean over the mini-batch of what is computed under its prompt, ``(E,)``, before the prompt's step.
        prompted: what a prompted baseline's forward gave, for its loss.
        q_layers: what the last blocks put out beside q, ``(B, blocks, K, D)``, where the head needs it.
        features: what the head of a baseline without prompts sees, ``(B, F)``.
    """

    def __init__(self, backbone: PromptableViT, images: Tensor, rows: Tensor, device: torch.device) -> None:
        self._backbone = backbone
        self.images, self.host_rows = images, rows
        class_rows, local = torch.unique(rows, return_inverse=True)
        self.rows, self.class_rows, self.local = (
            t.to(device, non_blocking=True) for t in (rows, class_rows, local)
        )
        self.initial: Tensor | None = None
        self.elected: Tensor | None = None
        self.before: Tensor | None = None
        self.prompted: Any = None
        self.features: Tensor | None = None
        self.q_layers: Tensor | None = None

    @cached_property
    def tokens(self) -> Tensor:
        """``(B, T, D)``, the same in every encode of the step."""
        return self._backbone.tokens(self.images)

    @cached_property
    def q(self) -> Tensor:
        """Unprompted embeddings, ``(B, D)``, without gradient."""
        return self._backbone.query(self.images, self.tokens)

    @cached_property
    def first(self) -> Tensor:
        """Index of the first sample of each sample's class, ``(B,)`` int64."""
        return (self.rows.unsqueeze(1) == self.rows.unsqueeze(0)).float().argmax(1)
