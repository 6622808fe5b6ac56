"""ViT-NCM and its kin: a head on class sums of the frozen backbone, no prompts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from avalanche.core import SupervisedPlugin
from torch import nn

from avalanche_f2ocl.backbone.devices import default_device
from avalanche_f2ocl.backbone.load import load_backbone
from avalanche_f2ocl.models.vit_ncm import ViTNCMModel
from avalanche_f2ocl.strategies.base import OnlineStrategy
from avalanche_f2ocl.strategies.plugins import PromptGrowthPlugin, PrototypeUpdatePlugin


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
        device, plugins: as :class:`avalanche_f2ocl.strategies.base.OnlineStrategy`.
        **options: likewise.

    Raises:
        TypeError, ValueError, OSError: as :class:`avalanche_f2ocl.F2OCLStrategy`.

    Example:
        >>> ViTNCM(backbone="micro_vit", evaluator=None).model.head.metric
        'cosine'
    """

    shares_work = True

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
        precision: str = "auto",
        device: str | torch.device | None = None,
        seed: int = 0,
        plugins: Sequence[SupervisedPlugin] | None = None,
        **options: Any,
    ):
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
            device=device,
            **options,
        )
