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
    arXiv 2510.00467, Algorithm 1. :class:`avalanche_f2ocl.strategies.base.BaseStrategy` describes images, labels,
    training-time logits and devices.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's (frozen in place).
        weights: local checkpoint for a named backbone; by default timm downloads the weights.
        image_size: side of the images in pixels; by default the backbone's own.
        device: by default CUDA if there is a CUDA device, else the CPU.
        config: all options of :class:`avalanche_f2ocl.config.F2OCLConfig` at once.
        **options: single options, which override ``config``, and those of the training loop, see
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`: ``train_mb_size``, the size of the mini-batch that
            one contrastive loss sees, ``train_epochs``, ``eval_mb_size``, ``plugins``, ``evaluator``, ``eval_every``,
            ``peval_mode``, ``on_bad_input``.

    Raises:
        TypeError, ValueError: an option is not allowed; the message says what is.
        OSError: the weights could not be loaded.

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

        Each image is seen in two passes: the pass without a prompt sees the whole image; the pass under a prompt that
        all classes share sees its middle, enlarged, and its quarters separately. Ridge regressions on a few blocks
        each, with penalties chosen by generalised cross-validation, take the outputs of the blocks; their own outputs
        are added up, the more reliable ones with more weight. The prompt is trained with the contrastive loss of the
        paper for a few mini-batches: it stops once its steps have moved embeddings by twice their spread, so that sums
        stay comparable.

        benchmarks/README.md describes the search on held-out training images, as far as it has been run, and compares
        the result with frozen heads. Sums take 234 MB on a ViT-Ti, 467 MB on a ViT-S and 580 MB on a ViT-B.

        Args:
            **options: those of the constructor; they override the recommended ones.

        Raises:
            TypeError, ValueError: an option is not allowed.
            OSError: the weights could not be loaded.

        Example:
            >>> model = F2OCLStrategy.best(backbone="micro_vit", evaluator=None).model
            >>> [head.moment.shape[0] for head in model.head.heads]
            [1280, 1280, 1280, 512, 512, 512]
        """
        return cls(**{**PRESETS["best"], **options})

    @classmethod
    def paper(cls, **options: Unpack[F2OCLStrategyKeywords]) -> Self:
        """The literal reading of the paper: each label's own prompt, keys by gradient, a constant step size.

        It is offered for comparison. With exact keys it scores near 100 %, and with its own keys it is no better
        than those keys are, because the prompts encode labels, not images.

        Args:
            **options: those of the constructor; they override the literal ones.

        Raises:
            TypeError, ValueError: an option is not allowed.
            OSError: the weights could not be loaded.

        Example:
            >>> F2OCLStrategy.paper(backbone="micro_vit", evaluator=None).model.config.prompt_assignment
            'label'
        """
        return cls(**{**PRESETS["paper"], **options})


for _name, _preset in PRESETS.items():
    _make = getattr(F2OCLStrategy, _name).__func__
    _make.__signature__ = spelled_out(_make, option_defaults(F2OCLStrategy) | _preset)
