"""What L2P and DualPrompt share: prompts chosen by learned keys under a linear head."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from avalanche_f2ocl.baselines.linear import LinearConfig, LinearKeywords, LinearModel
from avalanche_f2ocl.heads import NCMHead
from avalanche_f2ocl.models.batch import TrainingBatch
from avalanche_f2ocl.models.predicting import Prediction
from avalanche_f2ocl.options import DEFAULT_BACKBONE, PromptInit
from avalanche_f2ocl.state.row_adam import RowAdam


@dataclass(frozen=True)
class PromptedConfig(LinearConfig):
    """Options of prompts chosen by learned keys, checked at construction.

    Args:
        pull: weight of the key loss.
        classifier: ``"linear"``; or ``"ncm"``, nearest class mean of the prompted embeddings, re-encoded after
            each step; the linear head then only trains the prompts.
        prompt_init: as :class:`avalanche_f2ocl.config.F2OCLConfig`.
        lr, mask_logits, readout, normalise, inputs, precision, seed: as
            :class:`avalanche_f2ocl.baselines.linear.LinearConfig`.

    Raises:
        TypeError, ValueError: an option out of range.
    """

    pull: float = 1.0
    classifier: Literal["linear", "ncm"] = "linear"
    prompt_init: PromptInit = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.pull, (int, float)) and self.pull >= 0):
            raise ValueError(f"pull={self.pull!r}: must be a number of 0 or more")


class PromptedKeywords(LinearKeywords, total=False):
    """What L2P and DualPrompt take."""

    pull: float
    classifier: Literal["linear", "ncm"]
    prompt_init: PromptInit


class Prompted(NamedTuple):
    """Embeddings under chosen prompts.

    Attributes:
        z: ``(B, D)``.
        similarity: of q to the keys of the chosen prompts, ``(B, k)``.
        rows: of the chosen prompts, ``(B, k)`` int64.
    """

    z: Tensor
    similarity: Tensor
    rows: Tensor


class PromptedModel(LinearModel):
    """Frozen backbone, shared prompts, linear head; one Adam step per mini-batch on all of them.

    The loss is the cross-entropy plus ``pull`` times the cosine distance of q to the chosen keys, summed over
    them and averaged over samples. Prompts and keys are under Adam as usual; a row of the head is, from its
    class's birth on.

    Args:
        backbone, weights, image_size, device, config: as :class:`avalanche_f2ocl.FrozenModel`.
        **options: of the class's ``config_type``.

    Attributes:
        prompts: what is trained beside the head; a module without anything that grows.
        ncm: the nearest-class-mean head, or None.
    """

    config: Any
    prompts: Any

    def __init__(self, backbone: str | nn.Module = DEFAULT_BACKBONE, **options: Any) -> None:
        super().__init__(backbone, **options)
        self.prompts = self.make_prompts()
        self.ncm = NCMHead(self.backbone.embed_dim) if self.config.classifier == "ncm" else None
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
    def embed(self, tokens: Tensor, q: Tensor) -> Prompted:
        """Embeds tokens ``(B, T, D)`` under the prompts that their q ``(B, D)`` choose."""

    def add_classes(self, ids: Tensor) -> None:
        super().add_classes(ids)
        if self.ncm is not None:
            self.ncm.add_rows(len(ids))

    def encode_batch(self, batch: TrainingBatch) -> Prompted:
        return self.embed(batch.tokens, batch.q)

    def loss(self, batch: TrainingBatch) -> Tensor:
        """Mean cross-entropy and key loss, scalar."""
        prompted: Prompted = batch.encoded
        key_loss = (1 - prompted.similarity).sum(1).mean()
        return self.cross_entropy(prompted.z, batch) + self.config.pull * key_loss

    @torch.no_grad()
    def count_batch(self, batch: TrainingBatch) -> None:
        if self.ncm is not None:
            self.ncm.update(self.embed(batch.tokens, batch.q).z, batch.rows)
        super().count_batch(batch)

    def batch_logits(self, batch: TrainingBatch) -> Tensor:
        return self._logits(batch.encoded.z.detach())

    @torch.no_grad()
    def predict_batch(self, images: Tensor) -> Prediction:
        tokens = self.backbone.tokens(images)
        prompted = self.embed(tokens, self.backbone.query(images, tokens))
        return Prediction(self._logits(prompted.z), tokens, pool_rows=prompted.rows)

    @torch.no_grad()
    def _logits(self, z: Tensor) -> Tensor:
        return (self.head if self.ncm is None else self.ncm).logits(z)
