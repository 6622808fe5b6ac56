"""The common part of L2P and DualPrompt: prompts chosen by learned keys under a linear head."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from avalanche_f2ocl.arguments import check_not_negative
from avalanche_f2ocl.baselines.prompted import Prompted, PromptedConfig, PromptedKeywords, PromptedModel
from avalanche_f2ocl.heads import NCMHead
from avalanche_f2ocl.models.batch import TrainingBatch
from avalanche_f2ocl.options import DEFAULT_BACKBONE, PromptInit


@dataclass(frozen=True)
class KeyedConfig(PromptedConfig):
    """Options of prompts chosen by learned keys, checked at construction.

    Args:
        pull: weight of the key loss.
        classifier: ``"linear"``; or ``"ncm"``, the nearest class mean of the prompted embeddings, encoded again after
            the last step, in which case the linear head only serves to train the prompts.
        prompt_init: initial values of the prompts, see :class:`avalanche_f2ocl.config.F2OCLConfig`.
        lr, mask_logits, head_init, passes, augment, readout, normalise, inputs, fit, precision, seed: see
            :class:`avalanche_f2ocl.baselines.prompted.PromptedConfig`.

    Raises:
        TypeError, ValueError: an option is not allowed.
    """

    pull: float = 1.0
    classifier: Literal["linear", "ncm"] = "linear"
    prompt_init: PromptInit = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("pull", self.pull)


class KeyedKeywords(PromptedKeywords, total=False):
    """Keywords of L2P and DualPrompt."""

    pull: float
    classifier: Literal["linear", "ncm"]
    prompt_init: PromptInit


class KeyedModel(PromptedModel):
    """Frozen backbone, prompts chosen by learned keys, linear head.

    The penalty is ``pull`` times the cosine distance of q to the chosen keys, summed over the keys and averaged over
    the samples.

    Args:
        backbone, weights, image_size, device, config: see :class:`avalanche_f2ocl.FrozenModel`.
        **options: options of the class's ``config_type``.

    Attributes:
        prompts: the prompts, see :class:`PromptedModel`.
        ncm: the nearest-class-mean head, or None.
    """

    config_type = KeyedConfig

    def __init__(self, backbone: str | nn.Module = DEFAULT_BACKBONE, **options: Any) -> None:
        super().__init__(backbone, **options)
        self.ncm = NCMHead(self.backbone.embed_dim) if self.config.classifier == "ncm" else None
        self.to(self.backbone.device)

    def add_classes(self, ids: Tensor) -> None:
        super().add_classes(ids)
        if self.ncm is not None:
            self.ncm.add_rows(len(ids))

    def penalty(self, prompted: Prompted) -> Tensor:
        """The key loss, scalar."""
        assert prompted.similarity is not None
        return self.config.pull * (1 - prompted.similarity).sum(1).mean()

    @torch.no_grad()
    def count_batch(self, batch: TrainingBatch) -> None:
        if self.ncm is not None:
            self.ncm.update(self.embed(batch).z, batch.rows)
        super().count_batch(batch)

    @torch.no_grad()
    def score(self, prompted: Prompted) -> Tensor:
        return (self.head if self.ncm is None else self.ncm).logits(prompted.z)
