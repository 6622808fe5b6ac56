"""Heads on class sums of the frozen backbone, no prompts; ViT-NCM is the paper's one of them."""

from avalanche.core import SupervisedPlugin
from typing_extensions import Self, Unpack

from avalanche_f2ocl.models.base import BaseModel
from avalanche_f2ocl.models.frozen import FrozenModel, ViTNCMModel
from avalanche_f2ocl.rivals import rival_options
from avalanche_f2ocl.signatures import option_defaults, spelled_out
from avalanche_f2ocl.strategies.base import BaseStrategy
from avalanche_f2ocl.strategies.boundaries import EndTask
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

    @classmethod
    def rival(cls, name: str, **options: Unpack[FrozenStrategyKeywords]) -> Self:
        """Another author's method, as a setting of the head and of what it sees.

        ``"ranpac"``, ``"layup"``, ``"f-oal"``, ``"g-acil"``, ``"slda"``, ``"klda"``, ``"randumb"``, ``"fecam"``; with
        ``-task``, as published with boundaries; with ``-scaled``, with this package's scaled outputs. Sources, what
        they keep and what departs from the publication: :data:`avalanche_f2ocl.rivals.RIVALS` and docs/rivals.md.

        Args:
            name: the method.
            **options: as the constructor's; they win over the method's.

        Raises:
            ValueError: an unknown name; the message lists those there are.

        Example:
            >>> FrozenBackbone.rival("layup", backbone="micro_vit", evaluator=None).model.config.blocks
            6
        """
        return cls(**rival_options(name, options))

    def method_plugins(self, model: BaseModel) -> list[SupervisedPlugin]:
        boundaries = [EndTask()] if model.config.penalty == "task" else []
        return [*super().method_plugins(model), *boundaries]


class ViTNCM(FrozenBackbone):
    """The paper's ViT-NCM baseline: class means of the frozen embedding, F2OCL's limit without prompts.

    Args:
        **options: as :class:`FrozenBackbone`; the defaults are the paper's baseline.

    Example:
        >>> ViTNCM(backbone="micro_vit", evaluator=None).model.head.metric
        'cosine'
    """

    model_type = ViTNCMModel


_rival = FrozenBackbone.rival.__func__  # type: ignore[attr-defined]
_rival.__signature__ = spelled_out(_rival, option_defaults(FrozenBackbone))
