"""ViT-NCM and its kin as a plain PyTorch module: a head on class sums of the frozen backbone, no prompts."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.backbone.load import load_backbone
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.config import HeadOptions, check_choice
from avalanche_f2ocl.heads import NCMHead
from avalanche_f2ocl.heads.features import LAST_BLOCKS, feature_count, head_features
from avalanche_f2ocl.heads.make import make_head
from avalanche_f2ocl.models.base import Prediction
from avalanche_f2ocl.models.batch import OnlineBatch
from avalanche_f2ocl.models.saving import SavedModel
from avalanche_f2ocl.state.keys import key_scores

FEATURES = ("q", "layers")
ENCODER = ("readout", "normalise", "inputs", "precision")


class ViTNCMModel(SavedModel):
    """A head on class sums of the unprompted backbone.

    Args:
        backbone: the frozen encoder.
        seed: of the head's random projection.
        **options: of :class:`avalanche_f2ocl.config.HeadOptions`; ``head_features`` is ``"q"`` or ``"layers"``, here
            those of the unprompted forward pass.

    Example:
        >>> model = ViTNCMModel(load_backbone("micro_vit"))
        >>> images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
        >>> model.learn(images, [7, -3, 7, -3])
        >>> model.predict(images).shape
        torch.Size([4])
    """

    saved_as = "ViTNCM"

    def __init__(self, backbone: PromptableViT, seed: int = 0, **options: Any) -> None:
        head = HeadOptions(**{"head_features": "q", **options})
        check_choice("head_features", head.head_features, FEATURES)
        super().__init__(backbone, make_head(head, feature_count(head.head_features, backbone), seed))
        self.head_options, self.seed = head, seed
        self.head_features = head.head_features

    @property
    def options(self) -> dict[str, Any]:
        encoder = {name: getattr(self.backbone, name) for name in ENCODER}
        return {"seed": self.seed, **asdict(self.head_options), **encoder}

    @classmethod
    def from_options(cls, options: Mapping[str, Any], **backbone: Any) -> "ViTNCMModel":
        encoder = load_backbone(**backbone, **{name: options[name] for name in ENCODER if name in options})
        names = ["seed", *(field.name for field in fields(HeadOptions))]
        return cls(encoder, **{name: options[name] for name in names if name in options})

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
