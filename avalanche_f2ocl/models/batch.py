"""One mini-batch in training, shared by the phases of its step."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.backbone.vit import PromptableViT


class ImageView:
    """Images as a frozen backbone sees them; each forward pass is made when its result is first needed.

    Args:
        images: ``(B, C, H, W)``, on the model's device.
        backbone: encodes the images.

    Attributes:
        images: ``(B, C, H, W)``.
    """

    def __init__(self, images: Tensor, backbone: PromptableViT) -> None:
        self.images, self._backbone = images, backbone

    @cached_property
    def tokens(self) -> Tensor:
        """``(B, T, D)``, the same in every encode of the step."""
        return self._backbone.tokens(self.images)

    @cached_property
    def q(self) -> Tensor:
        """Unprompted embeddings, ``(B, D)``, without gradient."""
        return self._backbone.query(self.images, self.tokens)


class TrainingBatch(ImageView):
    """A mini-batch in training; it is dropped as a whole after the step.

    Args:
        images: ``(B, C, H, W)``, on the model's device.
        rows: rows of the samples' classes, ``(B,)`` int64 on the CPU.
        backbone: encodes the images.
        encode: makes the model's first forward pass over the mini-batch, see :meth:`BaseModel.encode_batch`.

    Attributes:
        host_rows: ``(B,)`` int64 on the CPU.
        rows: the same on the device.
        class_rows: the distinct rows, ``(P,)`` int64.
        local: each sample's index into ``class_rows``, ``(B,)`` int64.
    """

    def __init__(self, images: Tensor, rows: Tensor, backbone: PromptableViT, encode: Callable[[Any], Any]) -> None:
        super().__init__(images, backbone)
        self.host_rows, self._encode = rows, encode
        class_rows, local = torch.unique(rows, return_inverse=True)
        self.rows, self.class_rows, self.local = (
            t.to(images.device, non_blocking=True) for t in (rows, class_rows, local)
        )

    @cached_property
    def encoded(self) -> Any:
        """The result of the model's :meth:`BaseModel.encode_batch`, made once for outputs, loss and updates."""
        return self._encode(self)
