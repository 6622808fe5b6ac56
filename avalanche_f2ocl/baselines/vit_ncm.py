"""ViT-NCM: nearest class mean of the frozen backbone's embeddings, no prompts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from avalanche.core import SupervisedPlugin
from torch import Tensor, nn

from avalanche_f2ocl.backbone import PromptableViT
from avalanche_f2ocl.base_strategy import OnlineStrategy
from avalanche_f2ocl.batch import OnlineBatch
from avalanche_f2ocl.config import check_choice
from avalanche_f2ocl.heads import NCMHead
from avalanche_f2ocl.online_model import OnlineModel, Prediction
from avalanche_f2ocl.plugins import PromptGrowthPlugin, PrototypeUpdatePlugin


class ViTNCMModel(OnlineModel):
    """Running class means of unprompted embeddings.

    Args:
        backbone: the frozen encoder.
        metric: ``"cosine"`` or ``"euclidean"``.

    Example:
        >>> model = ViTNCMModel(PromptableViT.load("micro_vit"))
        >>> images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
        >>> model.learn(images, [7, -3, 7, -3])
        >>> model.predict(images).shape
        torch.Size([4])
    """

    def __init__(self, backbone: PromptableViT, metric: str = "cosine") -> None:
        check_choice("metric", metric)
        super().__init__(backbone, NCMHead(backbone.embed_dim, metric))

    def learn_batch(self, batch: OnlineBatch) -> None:
        self.update_prototypes(batch)

    @torch.no_grad()
    def update_prototypes(self, batch: OnlineBatch) -> None:
        """Takes the mini-batch into the class means."""
        self.head.update(batch.q, batch.rows)
        self.batches += 1

    def batch_logits(self, batch: OnlineBatch) -> Tensor:
        return self.head.logits(batch.q)

    @torch.no_grad()
    def predict_batch(self, images: Tensor) -> Prediction:
        tokens = self.backbone.tokens(images)
        return Prediction(self.head.logits(self.backbone.query(images, tokens)), tokens)


class NoOptimizer:
    """Stands where Avalanche expects an optimiser; there is nothing to train.

    Attributes:
        state: of the parameters; empty.
    """

    def __init__(self) -> None:
        self.state: dict = {}

    def zero_grad(self) -> None:
        """Does nothing."""

    def step(self) -> None:
        """Does nothing."""


class ViTNCM(OnlineStrategy):
    """The paper's ViT-NCM baseline: F2OCL's limit without prompts.

    Args:
        backbone, weights, image_size, metric, normalise, inputs: as :class:`avalanche_f2ocl.F2OCLStrategy`.
        readout: ``"cls"`` or ``"patch"``.
        plugins, **options: as :class:`avalanche_f2ocl.base_strategy.OnlineStrategy`.

    Raises:
        TypeError, ValueError, OSError: as :class:`avalanche_f2ocl.F2OCLStrategy`.

    Example:
        >>> ViTNCM(backbone="micro_vit", evaluator=None).model.head.metric
        'cosine'
    """

    def __init__(
        self,
        *,
        backbone: str | nn.Module = "vit_base_patch16_224.augreg_in21k",
        weights: str | Path | None = None,
        image_size: int | None = None,
        readout: str = "cls",
        metric: str = "cosine",
        normalise: str = "backbone",
        inputs: str = "auto",
        plugins: Sequence[SupervisedPlugin] | None = None,
        **options: Any,
    ):
        encoder = PromptableViT.load(
            backbone, weights, image_size, readout=readout, normalise=normalise, inputs=inputs
        )
        super().__init__(
            model=ViTNCMModel(encoder, metric),
            optimizer=NoOptimizer(),
            plugins=[*(plugins or []), PromptGrowthPlugin(), PrototypeUpdatePlugin()],
            **options,
        )
