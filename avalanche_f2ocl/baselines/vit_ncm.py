"""ViT-NCM and its kin: a head on class sums of the frozen backbone, no prompts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from avalanche.core import SupervisedPlugin
from torch import Tensor, nn

from avalanche_f2ocl.backbone import PromptableViT
from avalanche_f2ocl.base_strategy import OnlineStrategy
from avalanche_f2ocl.batch import OnlineBatch
from avalanche_f2ocl.config import HeadOptions, check_choice
from avalanche_f2ocl.head_features import LAST_BLOCKS, feature_count, head_features
from avalanche_f2ocl.heads import NCMHead
from avalanche_f2ocl.heads.make import make_head
from avalanche_f2ocl.keys import key_scores
from avalanche_f2ocl.online_model import OnlineModel, Prediction
from avalanche_f2ocl.plugins import PromptGrowthPlugin, PrototypeUpdatePlugin

FEATURES = ("q", "layers")


class ViTNCMModel(OnlineModel):
    """A head on class sums of the unprompted backbone.

    Args:
        backbone: the frozen encoder.
        seed: of the head's random projection.
        **options: of :class:`avalanche_f2ocl.config.HeadOptions`; ``head_features`` is ``"q"`` or ``"layers"``, here
            those of the unprompted forward pass.

    Example:
        >>> model = ViTNCMModel(PromptableViT.load("micro_vit"))
        >>> images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
        >>> model.learn(images, [7, -3, 7, -3])
        >>> model.predict(images).shape
        torch.Size([4])
    """

    def __init__(self, backbone: PromptableViT, seed: int = 0, **options: Any) -> None:
        options = HeadOptions(**{"head_features": "q", **options})
        check_choice("head_features", options.head_features, FEATURES)
        super().__init__(backbone, make_head(options, feature_count(options.head_features, backbone), seed))
        self.head_features = options.head_features

    def learn_batch(self, batch: OnlineBatch) -> None:
        self.update_prototypes(batch)

    @torch.no_grad()
    def update_prototypes(self, batch: OnlineBatch) -> None:
        """Takes the mini-batch into the head's sums."""
        self.head.update(self._batch_features(batch), batch.rows)
        self.batches += 1

    def batch_logits(self, batch: OnlineBatch) -> Tensor:
        """By class means: other heads would have to be solved for every mini-batch."""
        features = self._batch_features(batch)
        if isinstance(self.head, NCMHead):
            return self.head.logits(features)
        return key_scores(features, self.head.means(), self.head.used("counts"))

    def _batch_features(self, batch: OnlineBatch) -> Tensor:
        if batch.features is None:
            batch.features = batch.q if self.head_features == "q" else self._layers(batch.tokens)
        return batch.features

    def _layers(self, tokens: Tensor) -> Tensor:
        q, layers = self.backbone.encode_layers(tokens, last=LAST_BLOCKS)
        return head_features("layers", q, q, layers)

    @torch.no_grad()
    def predict_batch(self, images: Tensor) -> Prediction:
        tokens = self.backbone.tokens(images)
        if self.head_features == "layers":
            return Prediction(self.head.logits(self._layers(tokens)), tokens)
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
        backbone, weights, image_size, normalise, inputs, precision, seed: as :class:`avalanche_f2ocl.F2OCLStrategy`.
        readout: ``"cls"`` or ``"patch"``.
        head, metric, shrinkage, priors, projection, ridge: see :class:`avalanche_f2ocl.config.HeadOptions`; the
            default is the paper's baseline.
        head_features: ``"q"``, the embedding, or ``"layers"``.
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
        head: str = "ncm",
        head_features: str = "q",
        metric: str = "cosine",
        shrinkage: float | None = None,
        priors: str = "equal",
        projection: int | None = None,
        ridge: float | None = None,
        normalise: str = "backbone",
        inputs: str = "auto",
        precision: str = "float32",
        seed: int = 0,
        plugins: Sequence[SupervisedPlugin] | None = None,
        **options: Any,
    ):
        encoder = PromptableViT.load(
            backbone, weights, image_size, readout=readout, normalise=normalise, inputs=inputs, precision=precision
        )
        model = ViTNCMModel(
            encoder,
            seed,
            head=head,
            head_features=head_features,
            metric=metric,
            shrinkage=shrinkage,
            priors=priors,
            projection=projection,
            ridge=ridge,
        )
        super().__init__(
            model=model,
            optimizer=NoOptimizer(),
            seed=seed,
            plugins=[*(plugins or []), PromptGrowthPlugin(), PrototypeUpdatePlugin()],
            **options,
        )
