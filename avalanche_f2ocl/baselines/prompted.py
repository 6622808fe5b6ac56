"""What L2P and DualPrompt share: prompts chosen by learned keys under a linear head."""

from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from avalanche_f2ocl.backbone import PromptableViT
from avalanche_f2ocl.baselines.linear import LinearModel
from avalanche_f2ocl.batch import OnlineBatch
from avalanche_f2ocl.config import check_choice
from avalanche_f2ocl.heads import NCMHead
from avalanche_f2ocl.online_model import Prediction
from avalanche_f2ocl.optim import RowAdam

MASKS = ("none", "batch")
CLASSIFIERS = ("linear", "ncm")


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
        backbone: the frozen encoder.
        lr: step size.
        prompts: what is trained beside the head; a module without anything that grows.
        pull: weight of the key loss.
        mask_logits: ``"none"``, the cross-entropy runs over the classes so far; ``"batch"``, over those of the
            mini-batch alone, so that classes that are absent are not pushed down.
        classifier: ``"linear"``; or ``"ncm"``, nearest class mean of the prompted embeddings, re-encoded after
            each step; the linear head then only trains the prompts.

    Attributes:
        ncm: the nearest-class-mean head, or None.
    """

    def __init__(
        self,
        backbone: PromptableViT,
        lr: float,
        prompts: nn.Module,
        pull: float,
        mask_logits: str = "none",
        classifier: str = "linear",
    ) -> None:
        if not (isinstance(pull, (int, float)) and pull >= 0):
            raise ValueError(f"pull={pull!r}: must be a number of 0 or more")
        check_choice("mask_logits", mask_logits, MASKS)
        check_choice("classifier", classifier, CLASSIFIERS)
        super().__init__(backbone, lr)
        self.prompts, self.pull, self.mask_logits = prompts, pull, mask_logits
        self.ncm = NCMHead(backbone.embed_dim) if classifier == "ncm" else None
        groups = [
            {"params": list(prompts.parameters()), "every_row": True},
            {"params": list(self.head.parameters())},
        ]
        self.optimizer = RowAdam(groups, lr)

    @abstractmethod
    def embed(self, tokens: Tensor, q: Tensor) -> Prompted:
        """Embeds tokens ``(B, T, D)`` under the prompts that their q ``(B, D)`` choose."""

    def add_classes(self, ids: Tensor) -> None:
        super().add_classes(ids)
        if self.ncm is not None:
            self.ncm.add_rows(len(ids))

    def loss(self, batch: OnlineBatch) -> Tensor:
        prompted = self._prompted(batch)
        if self.mask_logits == "batch":
            rows, targets = batch.class_rows, batch.local
        else:
            rows, targets = torch.arange(self.head.num_rows, device=self.device), batch.rows
        logits = F.linear(prompted.z, self.head.trainable("weight", rows), self.head.trainable("bias", rows))
        return F.cross_entropy(logits, targets) + self.pull * (1 - prompted.similarity).sum(1).mean()

    @torch.no_grad()
    def end_batch(self, batch: OnlineBatch) -> None:
        if self.ncm is not None:
            self.ncm.update(self.embed(batch.tokens, batch.q).z, batch.rows)
        super().end_batch(batch)

    def batch_logits(self, batch: OnlineBatch) -> Tensor:
        return self._logits(self._prompted(batch).z.detach())

    @torch.no_grad()
    def predict_batch(self, images: Tensor) -> Prediction:
        tokens = self.backbone.tokens(images)
        prompted = self.embed(tokens, self.backbone.query(images, tokens))
        return Prediction(self._logits(prompted.z), tokens, pool_rows=prompted.rows)

    def _logits(self, z: Tensor) -> Tensor:
        return (self.head if self.ncm is None else self.ncm).logits(z)

    def _prompted(self, batch: OnlineBatch) -> Prompted:
        """The training forward, once for the outputs and the loss."""
        if batch.prompted is None:
            batch.prompted = self.embed(batch.tokens, batch.q)
        return batch.prompted
