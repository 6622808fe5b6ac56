"""Heads on class sums of the frozen backbone, no prompts; ViT-NCM is the paper's one of them."""

from typing_extensions import Unpack

from avalanche_f2ocl.models.frozen import FrozenModel, ViTNCMModel
from avalanche_f2ocl.strategies.base import BaseStrategy
from avalanche_f2ocl.strategies.keywords import FrozenStrategyKeywords


class FrozenBackbone(BaseStrategy):
    """The frozen backbone under any head: what prompts have to beat.

    Args:
        backbone, weights, image_size, device: as :class:`avalanche_f2ocl.F2OCLStrategy`.
        config: all options of :class:`avalanche_f2ocl.config.FrozenConfig` at once.
        **options: single ones, over ``config``; and those of the loop, see
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`.

    Raises:
        TypeError, ValueError, OSError: as :class:`avalanche_f2ocl.F2OCLStrategy`.

    Example:
        >>> FrozenBackbone(backbone="micro_vit", head="lda", evaluator=None).model.head.priors
        'equal'
    """

    model_type = FrozenModel
    model: FrozenModel
    shares_work = True

    def __init__(self, **options: Unpack[FrozenStrategyKeywords]) -> None:
        super().__init__(**options)


class ViTNCM(FrozenBackbone):
    """The paper's ViT-NCM baseline: class means of the frozen embedding, F2OCL's limit without prompts.

    Args:
        **options: as :class:`FrozenBackbone`; the defaults are the paper's baseline.

    Example:
        >>> ViTNCM(backbone="micro_vit", evaluator=None).model.head.metric
        'cosine'
    """

    model_type = ViTNCMModel
