"""A linear head on the frozen backbone, trained by cross-entropy: the ground of ER, LwF, L2P and DualPrompt."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from avalanche.core import SupervisedPlugin
from torch import Tensor, nn
from torch.nn import functional as F

from avalanche_f2ocl.arguments import check_positive
from avalanche_f2ocl.backbone.devices import default_device
from avalanche_f2ocl.backbone.load import load_backbone
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.config import check_choice
from avalanche_f2ocl.models.base import OnlineModel, Prediction
from avalanche_f2ocl.models.batch import OnlineBatch
from avalanche_f2ocl.state.class_means import mask_unseen
from avalanche_f2ocl.state.rows import ClassRows
from avalanche_f2ocl.strategies.base import OnlineStrategy
from avalanche_f2ocl.strategies.plugins import PromptGrowthPlugin, online_batch

MASKS = ("none", "batch")


class LinearHead(ClassRows):
    """One shared linear classifier over all classes so far; rows start at zero.

    Args:
        dim: length D of the embeddings.

    Example:
        >>> head = LinearHead(2)
        >>> _ = head.add_rows(3)
        >>> head(torch.ones(4, 2)).shape
        torch.Size([4, 3])
    """

    weight: Tensor
    bias: Tensor
    counts: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_rows("weight", dim, trainable=True)
        self.register_rows("bias", trainable=True)
        self.register_rows("counts", dtype=torch.int64)

    def forward(self, z: Tensor) -> Tensor:
        """``(B, D)`` to ``(B, C)``, unmasked."""
        return F.linear(z, self.used("weight"), self.used("bias"))

    def training_logits(self, z: Tensor, rows: Tensor) -> Tensor:
        """``(B, D)`` to ``(B, R)`` for the classes ``rows (R,)`` alone; gradients flow to them."""
        return F.linear(z, self.trainable("weight", rows), self.trainable("bias", rows))

    def logits(self, z: Tensor) -> Tensor:
        """The same as :meth:`forward`, masked where a class has had no sample."""
        return mask_unseen(self(z), self.used("counts"))


class LinearModel(OnlineModel):
    """Frozen backbone and linear head, one SGD step per mini-batch.

    Args:
        backbone: the frozen encoder.
        lr: step size.
        mask_logits: ``"none"``, the cross-entropy runs over the classes so far; ``"batch"``, over those of the
            mini-batch alone, so that classes that are absent are not pushed down.

    Example:
        >>> model = LinearModel(load_backbone("micro_vit"), lr=0.01)
        >>> model.learn(torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8), [0, 1, 1, 0])
    """

    def __init__(self, backbone: PromptableViT, lr: float, mask_logits: str = "none") -> None:
        check_choice("mask_logits", mask_logits, MASKS)
        super().__init__(backbone, LinearHead(backbone.embed_dim))
        self.mask_logits = mask_logits
        self.optimizer = torch.optim.SGD(self.head.parameters(), lr=lr)

    def loss(self, batch: OnlineBatch) -> Tensor:
        """What the mini-batch's step is taken on, scalar."""
        return self.cross_entropy(batch.q, batch)

    def cross_entropy(self, z: Tensor, batch: OnlineBatch) -> Tensor:
        """Mean cross-entropy of embeddings ``(B, D)``, scalar."""
        if self.mask_logits == "batch":
            rows, targets = batch.class_rows, batch.local
        else:
            rows, targets = torch.arange(self.head.num_rows, device=self.device), batch.rows
        return F.cross_entropy(self.head.training_logits(z, rows), targets)

    @torch.no_grad()
    def end_batch(self, batch: OnlineBatch) -> None:
        """Counts the mini-batch, after its step."""
        self.head.counts.index_add_(0, batch.rows, torch.ones_like(batch.rows))
        self.batches += 1

    def learn_batch(self, batch: OnlineBatch) -> None:
        self.optimizer.zero_grad()
        self.loss(batch).backward()
        self.optimizer.step()
        self.end_batch(batch)

    @torch.no_grad()
    def batch_logits(self, batch: OnlineBatch) -> Tensor:
        return self.head.logits(batch.q)

    @torch.no_grad()
    def predict_batch(self, images: Tensor) -> Prediction:
        tokens = self.backbone.tokens(images)
        return Prediction(self.head.logits(self.backbone.query(images, tokens)), tokens)


class LossPlugin(SupervisedPlugin):
    """Adds the model's loss and ends the mini-batch."""

    def before_backward(self, strategy, **kwargs):
        strategy.loss += strategy.model.loss(online_batch(strategy))

    def after_training_iteration(self, strategy, **kwargs):
        strategy.model.end_batch(online_batch(strategy))
        strategy.online_batch = None


class LinearStrategy(OnlineStrategy):
    """Online training of the linear head; forgets, as its softmax leans to the latest classes.

    Args:
        backbone, weights, image_size, normalise, inputs, precision: as :class:`avalanche_f2ocl.F2OCLStrategy`.
        readout: ``"cls"`` or ``"patch"``.
        lr: the optimiser's step size.
        mask_logits: ``"none"`` or ``"batch"``, see :class:`LinearModel`.
        model_type: makes the model from backbone, step size and mask.
        device, plugins: as :class:`avalanche_f2ocl.strategies.base.OnlineStrategy`.
        **options: likewise.

    Raises:
        TypeError, ValueError, OSError: as :class:`avalanche_f2ocl.F2OCLStrategy`.

    Example:
        >>> LinearStrategy(backbone="micro_vit", evaluator=None).train_mb_size
        10
    """

    def __init__(
        self,
        *,
        backbone: str | nn.Module = "vit_base_patch16_224.augreg_in21k",
        weights: str | Path | None = None,
        image_size: int | None = None,
        readout: str = "cls",
        normalise: str = "backbone",
        inputs: str = "auto",
        precision: str = "auto",
        device: str | torch.device | None = None,
        lr: float = 0.01,
        mask_logits: str = "none",
        model_type: Callable[[PromptableViT, float, str], LinearModel] = LinearModel,
        plugins: Sequence[SupervisedPlugin] | None = None,
        **options: Any,
    ):
        check_positive("lr", lr)
        encoder = load_backbone(
            backbone,
            weights,
            image_size,
            readout=readout,
            normalise=normalise,
            inputs=inputs,
            precision=precision,
            device=default_device(device),
        )
        model = model_type(encoder, lr, mask_logits)
        super().__init__(
            model=model,
            optimizer=model.optimizer,
            plugins=[*(plugins or []), PromptGrowthPlugin(), LossPlugin()],
            device=device,
            **options,
        )
