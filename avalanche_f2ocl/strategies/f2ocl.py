"""F2OCL as an Avalanche strategy."""

from typing_extensions import Self, Unpack

from avalanche_f2ocl.config import PRESETS
from avalanche_f2ocl.models.f2ocl import F2OCLModel
from avalanche_f2ocl.signatures import option_defaults, spelled_out
from avalanche_f2ocl.strategies.base import BaseStrategy
from avalanche_f2ocl.strategies.keywords import F2OCLStrategyKeywords


class F2OCLStrategy(BaseStrategy):
    """Rehearsal-free, task-free online learning with contrastive prompts.

    Source: "Rehearsal-free and Task-free Online Continual Learning With Contrastive Prompt",
    arXiv 2510.00467, Algorithm 1. Images, labels, training-time logits and devices: see
    :class:`avalanche_f2ocl.strategies.base.BaseStrategy`.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's (frozen in place).
        weights: local checkpoint for a named backbone; default is timm's download.
        image_size: side in pixels; default the backbone's own.
        device: default CUDA if there is one, else CPU.
        config: all options of :class:`avalanche_f2ocl.config.F2OCLConfig` at once.
        **options: single ones, over ``config``; and those of the loop, see
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`: ``train_mb_size``, the mini-batch that one
            contrastive loss sees, ``train_epochs``, ``eval_mb_size``, ``plugins``, ``evaluator``, ``eval_every``,
            ``peval_mode``, ``on_bad_input``.

    Raises:
        TypeError, ValueError: an option that is not allowed; the message says what is.
        OSError: weights that could not be loaded.

    Example:
        >>> from avalanche.benchmarks import split_online_stream
        >>> from avalanche_f2ocl import class_incremental_stream
        >>> stream = class_incremental_stream("digits", groups=5, train_per_class=4, test_per_class=2)
        >>> strategy = F2OCLStrategy(backbone="micro_vit", evaluator=None)
        >>> for experience in stream.train_stream:
        ...     online = split_online_stream([experience], 10, shuffle=False)
        ...     _ = strategy.train(online, eval_streams=[])
        >>> len(strategy.model.class_ids)
        10
    """

    model_type = F2OCLModel
    model: F2OCLModel
    shares_work = True

    def __init__(self, **options: Unpack[F2OCLStrategyKeywords]) -> None:
        super().__init__(**options)

    @classmethod
    def best(cls, **options: Unpack[F2OCLStrategyKeywords]) -> Self:
        """The recommended settings: what this package adds to the paper.

        One prompt for all classes, trained by the same contrastive loss, instead of one a class; and two ridge
        regressions, their penalties by generalised cross-validation, on what the last four blocks put out with and
        without it, their outputs added. Chosen on CIFAR-100, as benchmarks/README.md says; what it gives elsewhere, and
        where frozen features alone do better, stands in benchmarks/README.md. The sums take ``16 F**2`` bytes for
        ``F = 8 D`` features (151 MB on a ViT-S, 604 MB on a ViT-B), and the first prediction after an update
        ``O(F**3)``.

        Args:
            **options: as the constructor's; they win over the recommended ones.

        Example:
            >>> F2OCLStrategy.best(backbone="micro_vit", evaluator=None).model.head.heads[0].moment.shape
            torch.Size([1024, 1024])
        """
        return cls(**{**PRESETS["best"], **options})

    @classmethod
    def paper(cls, **options: Unpack[F2OCLStrategyKeywords]) -> Self:
        """The literal reading of the paper: own label's prompts, keys by gradient, a constant step size.

        It is offered for comparison. With exact keys it scores near 100 %, with its own keys no better
        than those keys are: the prompts encode labels, not images.

        Args:
            **options: as the constructor's; they win over the literal ones.
        """
        return cls(**{**PRESETS["paper"], **options})


for _name, _preset in PRESETS.items():
    _make = getattr(F2OCLStrategy, _name).__func__
    _make.__signature__ = spelled_out(_make, option_defaults(F2OCLStrategy) | _preset)
