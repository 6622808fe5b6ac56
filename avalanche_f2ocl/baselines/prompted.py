"""The common part of methods that train a head and prompts for all classes: their passes over a mini-batch."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.baselines.augmentation import Augment, augmented
from avalanche_f2ocl.baselines.linear import LinearConfig, LinearKeywords, LinearModel
from avalanche_f2ocl.models.batch import ImageView, TrainingBatch
from avalanche_f2ocl.models.prediction import Prediction
from avalanche_f2ocl.options import DEFAULT_BACKBONE
from avalanche_f2ocl.state.row_adam import RowAdam


@dataclass(frozen=True)
class PromptedConfig(LinearConfig):
    """Options of trained prompts, checked at construction.

    Args:
        passes: optimiser steps on each mini-batch.
        augment: how images are changed, anew in each pass: ``"none"``, not at all; ``"crop"``, shifted and mirrored;
            ``"autoaugment"``, also changed by AutoAugment's policy. See
            :func:`avalanche_f2ocl.baselines.augmentation.augmented`.
        lr, mask_logits, head_init, readout, normalise, inputs, fit, precision, seed: see
            :class:`avalanche_f2ocl.baselines.linear.LinearConfig`.

    Raises:
        TypeError, ValueError: an option is not allowed.
    """

    passes: int = 1
    augment: Augment = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive_int("passes", self.passes)


class PromptedKeywords(LinearKeywords, total=False):
    """Keywords of every strategy with trained prompts."""

    passes: int
    augment: Augment


class Prompted(NamedTuple):
    """Embeddings under prompts.

    Attributes:
        z: embeddings, ``(B, D)``.
        similarity: similarity of the images to the keys of their prompts, ``(B, k)``; None without keys.
        rows: rows of these prompts, ``(B, k)`` int64; None if there is nothing to choose.
    """

    z: Tensor
    similarity: Tensor | None = None
    rows: Tensor | None = None


class PromptedBatch(TrainingBatch):
    """A training mini-batch of :class:`PromptedModel`.

    Attributes:
        taken: number of passes so far.
    """

    taken = 0


class PromptedModel(LinearModel):
    """Frozen backbone, prompts for all classes, a head; Adam steps on all of them.

    The loss is the cross-entropy plus the method's own penalty. Adam updates prompts and their keys as usual, and a row
    of the head from the time its class appears.

    Args:
        backbone, weights, image_size, device, config: see :class:`avalanche_f2ocl.FrozenModel`.
        **options: options of the class's ``config_type``.

    Attributes:
        prompts: the module that is trained besides the head; it does not grow.
    """

    config_type = PromptedConfig
    batch_type = PromptedBatch
    config: Any
    prompts: Any

    def __init__(self, backbone: str | nn.Module = DEFAULT_BACKBONE, **options: Any) -> None:
        super().__init__(backbone, **options)
        self.prompts = self.make_prompts()
        groups = [
            {"params": list(self.prompts.parameters()), "every_row": True},
            {"params": list(self.head.parameters())},
        ]
        self.optimizer = RowAdam(groups, self.config.lr)
        self.to(self.backbone.device)

    @abstractmethod
    def make_prompts(self) -> nn.Module:
        """The prompts of :attr:`config`."""

    @abstractmethod
    def embed(self, view: ImageView) -> Prompted:
        """Embeds images under prompts."""

    def penalty(self, prompted: Prompted) -> Tensor:
        """The penalty that is added to the cross-entropy, scalar."""
        return prompted.z.new_zeros(())

    @property
    def passes(self) -> int:
        return self.config.passes

    def encode_batch(self, batch: ImageView) -> Prompted:
        return self.embed(batch)

    def next_pass(self, batch: PromptedBatch) -> Prompted:
        """The embeddings of the mini-batch, augmented as the options say, under the present prompts."""
        number, batch.taken = batch.taken, batch.taken + 1
        config = self.config
        if config.augment == "none":
            return batch.encoded if number == 0 else self.embed(batch)
        number += self.batches * config.passes
        images = augmented(batch.images, self.backbone.prepare, config.augment, config.seed, number)
        return self.embed(ImageView(images, self.backbone))

    def loss(self, batch: Any) -> Tensor:
        """Mean cross-entropy and penalty, scalar."""
        prompted = self.next_pass(batch)
        return self.cross_entropy(prompted.z, batch) + self.penalty(prompted)

    def batch_logits(self, batch: TrainingBatch) -> Tensor:
        with torch.set_grad_enabled(self.config.augment == "none"):  # then it is training's first pass
            return self.score(batch.encoded)

    @torch.no_grad()
    def predict_batch(self, images: Tensor) -> Prediction:
        view = ImageView(images, self.backbone)
        prompted = self.embed(view)
        return Prediction(self.score(prompted), view.tokens, pool_rows=prompted.rows)

    @torch.no_grad()
    def score(self, prompted: Prompted) -> Tensor:
        """Logits ``(B, C)``, masked for classes without a sample."""
        return self.head.logits(prompted.z)
