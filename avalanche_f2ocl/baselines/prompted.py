"""What L2P and DualPrompt share: prompts chosen by learned keys under a linear head."""

from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.linear import LinearModel
from avalanche_f2ocl.config import check_choice
from avalanche_f2ocl.heads import NCMHead
from avalanche_f2ocl.models.base import Prediction
from avalanche_f2ocl.models.batch import OnlineBatch
from avalanche_f2ocl.state.row_adam import RowAdam

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
        mask_logits: as :class:`avalanche_f2ocl.baselines.linear.LinearModel`.
        prompts: what is trained beside the head; a module without anything that grows.
        pull: weight of the key loss.
        classifier: ``"linear"``; or ``"ncm"``, nearest class mean of the prompted embeddings, re-encoded after
            each step; the linear head then only trains the prompts.

    Attributes:
        ncm: the nearest-class-mean head, or None.
    """

    prompts: Any

    def __init__(
        self,
        backbone: PromptableViT,
        lr: float,
        mask_logits: str,
        prompts: nn.Module,
        pull: float,
        classifier: str = "linear",
    ) -> None:
        if not (isinstance(pull, (int, float)) and pull >= 0):
            raise ValueError(f"pull={pull!r}: must be a number of 0 or more")
        check_choice("classifier", classifier, CLASSIFIERS)
        super().__init__(backbone, lr, mask_logits)
        self.prompts, self.pull = prompts, pull
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
        key_loss = (1 - prompted.similarity).sum(1).mean()
        return self.cross_entropy(prompted.z, batch) + self.pull * key_loss

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
