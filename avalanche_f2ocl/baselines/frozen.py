"""Heads on class sums of the frozen backbone without prompts; one of them is the paper's ViT-NCM."""

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
    """The frozen backbone under any head, which is what prompts have to beat.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's (frozen in place).
        weights: local checkpoint for a named backbone; by default timm downloads the weights.
        image_size: side of the images in pixels; by default the backbone's own.
        device: by default CUDA if there is a CUDA device, else the CPU.
        config: all options of :class:`avalanche_f2ocl.config.FrozenConfig` at once.
        **options: single options, which override ``config``, and those of the training loop, see
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`.

    Raises:
        TypeError, ValueError: an option is not allowed.
        OSError: the weights could not be loaded.

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
        """Another author's method, as a setting of the head and its features.

        The methods are ``"ranpac"``, ``"layup"``, ``"f-oal"``, ``"g-acil"``, ``"slda"``, ``"klda"``, ``"randumb"`` and
        ``"fecam"``; names with ``-task`` use boundaries, as published; names with ``-scaled`` have this package's
        scaled outputs. :data:`avalanche_f2ocl.rivals.RIVALS` and docs/rivals.md give the sources, what the methods
        keep and how they differ from their publications.

        Args:
            name: name of the method.
            **options: options of the constructor; they override the method's.

        Raises:
            ValueError: the name is unknown; the message lists those there are.

        Example:
            >>> FrozenBackbone.rival("layup", backbone="micro_vit", evaluator=None).model.config.blocks
            6
        """
        return cls(**rival_options(name, options))

    def method_plugins(self, model: BaseModel) -> list[SupervisedPlugin]:
        boundaries = [EndTask()] if model.config.penalty == "task" else []
        return [*super().method_plugins(model), *boundaries]


class ViTNCM(FrozenBackbone):
    """The paper's ViT-NCM baseline: class means of the frozen embedding, which is F2OCL without prompts.

    Args:
        **options: options of :class:`FrozenBackbone`; the defaults are the paper's baseline.

    Example:
        >>> ViTNCM(backbone="micro_vit", evaluator=None).model.head.metric
        'cosine'
    """

    model_type = ViTNCMModel


_rival = FrozenBackbone.rival.__func__  # type: ignore[attr-defined]
_rival.__signature__ = spelled_out(_rival, option_defaults(FrozenBackbone))
