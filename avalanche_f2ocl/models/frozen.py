"""A head on class sums of the frozen backbone without prompts, as a plain PyTorch module; one such model is ViT-NCM."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import Self, Unpack

from avalanche_f2ocl.config import FrozenConfig
from avalanche_f2ocl.heads import NCMHead, TaskRidgeHead
from avalanche_f2ocl.heads.calibration import Calibration
from avalanche_f2ocl.heads.familiarity import Familiarity
from avalanche_f2ocl.heads.features import OF_CLASS_TOKENS, class_token_features, feature_plan, head_features
from avalanche_f2ocl.heads.head import SumHead
from avalanche_f2ocl.heads.make import make_head
from avalanche_f2ocl.keywords import FrozenKeywords
from avalanche_f2ocl.models.batch import TrainingBatch
from avalanche_f2ocl.models.early import plan_pass
from avalanche_f2ocl.models.hub import HubModel
from avalanche_f2ocl.models.prediction import Prediction
from avalanche_f2ocl.options import DEFAULT_BACKBONE
from avalanche_f2ocl.rivals import rival_options
from avalanche_f2ocl.signatures import option_defaults, spelled_out
from avalanche_f2ocl.state.keys import key_scores


class FrozenEncoding(NamedTuple):
    """What the pass without prompts gives.

    Attributes:
        features: the head's, ``(B, F)``.
        embeddings: those that familiarity is computed from, ``(B, 2, D)``.
    """

    features: Tensor
    embeddings: Tensor


class FrozenModel(HubModel):
    """Any head on class sums of the backbone without prompts.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, a ViT of timm's, or a
            :class:`avalanche_f2ocl.backbone.PromptableViT`, whose own options then hold.
        weights: local checkpoint for a named backbone.
        image_size: side of the images in pixels; by default the backbone's own.
        device: device of the model; by default the backbone's, and the CPU for a named backbone.
        config: all options at once.
        **options: single options of :class:`avalanche_f2ocl.config.FrozenConfig`, which override ``config``.

    Raises:
        TypeError, ValueError: an option is not allowed, see :class:`FrozenConfig`, or the backbone cannot be used, see
            :func:`avalanche_f2ocl.backbone.load_vit`.

    Example:
        >>> model = FrozenModel("micro_vit", head="ridge", projection=0)
        >>> images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
        >>> model.learn(images, [7, -3, 7, -3])
        >>> model.predict(images).shape
        torch.Size([4])
    """

    saved_as = "FrozenBackbone"
    config_type = FrozenConfig
    config: FrozenConfig
    head: SumHead

    def __init__(self, backbone: str | nn.Module = DEFAULT_BACKBONE, **options: Unpack[FrozenKeywords]) -> None:
        super().__init__(backbone, **options)
        self.plan = feature_plan(self.config, self.backbone)
        self.head = make_head(self.config, self.plan.widths, self.config.seed)
        self.pass_plan = plan_pass(self.backbone, self.plan.prompted)
        self.calibration, self.familiarity = Calibration(self.head), Familiarity(self.backbone.embed_dim, parts=2)
        self.to(self.backbone.device)

    @property
    def updates(self) -> tuple[Callable[[TrainingBatch], None], ...]:
        return (self.update_prototypes,)

    @classmethod
    def rival(cls, name: str, backbone: str | nn.Module = DEFAULT_BACKBONE, **options: Unpack[FrozenKeywords]) -> Self:
        """Another author's method, see :meth:`avalanche_f2ocl.FrozenBackbone.rival`.

        Args:
            name: one of :data:`avalanche_f2ocl.rivals.RIVALS`.
            backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's.
            **options: options of the constructor; they override the method's.

        Raises:
            ValueError: the name is unknown.

        Example:
            >>> FrozenModel.rival("f-oal", "micro_vit").head.moment.shape
            torch.Size([1000, 1000])
        """
        return cls(backbone, **rival_options(name, options))

    def encode_batch(self, batch: TrainingBatch) -> FrozenEncoding:
        return self._encode(batch.images, batch.tokens)

    @torch.no_grad()
    def update_prototypes(self, batch: TrainingBatch) -> None:
        """Adds the mini-batch to the head's sums."""
        self.take_in(batch, *batch.encoded)

    @torch.no_grad()
    def take_out(self, batch: TrainingBatch) -> None:
        self.head.remove(batch.encoded.features, batch.rows, batch.images)
        self.familiarity.remove(batch.encoded.embeddings, batch.rows)

    def batch_logits(self, batch: TrainingBatch) -> Tensor:
        """Scores by class means, because other heads would have to be solved for every mini-batch."""
        features = batch.encoded.features
        if isinstance(self.head, NCMHead):
            return self.head.logits(features)
        return key_scores(features, self.head.means(), self.head.used("counts"))

    @torch.no_grad()
    def predict_batch(self, images: Tensor) -> Prediction:
        tokens = self.backbone.tokens(images)
        features, embeddings = self._encode(images, tokens)
        return Prediction(self.head.logits(features), tokens, embeddings=embeddings)

    def _encode(self, images: Tensor, tokens: Tensor) -> FrozenEncoding:
        """All that is needed of images, from one pass."""
        plan, kind = self.pass_plan, self.config.head_features
        q, outputs = self.backbone.query_layers(images, tokens, plan.blocks, plan.grid)
        layers, early = plan.parts(outputs)
        if layers is None:
            features = q
        elif kind in OF_CLASS_TOKENS:
            features = class_token_features(kind, layers, self._last_norm)
        else:
            features = head_features("layers", q, q, layers)
        return FrozenEncoding(features, torch.stack([q, early], dim=1))

    def _last_norm(self, tokens: Tensor) -> Tensor:
        """The backbone's last norm, from ``(B, D)`` float32 to ``(B, D)`` float32."""
        return self.backbone.vit.norm(tokens.to(self.backbone.dtype)).float()

    def end_task(self) -> None:
        """Tells the model that a task has ended, which matters only for ``penalty="task"``.

        The strategy calls it at the end of a plain experience, or of a call of ``train`` on an online stream.

        Example:
            >>> FrozenModel("micro_vit", head="ridge", projection=0, penalty="task").end_task()
        """
        with self.lock:
            for part in self.head.modules() if isinstance(self.head, nn.Module) else ():
                if isinstance(part, TaskRidgeHead):
                    part.end_task()


class ViTNCMModel(FrozenModel):
    """The paper's ViT-NCM: class means of the embedding; the other options are those of :class:`FrozenModel`.

    Example:
        >>> ViTNCMModel("micro_vit").config.head
        'ncm'
    """

    saved_as = "ViTNCM"


_rival = FrozenModel.rival.__func__  # type: ignore[attr-defined]
_rival.__signature__ = spelled_out(_rival, option_defaults(FrozenModel))
