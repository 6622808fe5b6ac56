"""The keywords of strategies' constructors, for editors and type checkers; ``BaseStrategy`` has the defaults."""

from collections.abc import Callable, Sequence
from typing import Literal, TypedDict

from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from torch import nn

from avalanche_f2ocl.keywords import F2OCLKeywords, FrozenKeywords


class StrategyKeywords(TypedDict, total=False):
    """Keywords of every strategy."""

    backbone: str | nn.Module
    train_mb_size: int
    train_epochs: int
    eval_mb_size: int
    plugins: Sequence[SupervisedPlugin] | None
    evaluator: EvaluationPlugin | Callable[[], EvaluationPlugin] | None
    eval_every: int
    peval_mode: Literal["epoch", "experience", "iteration"]
    on_bad_input: Literal["raise", "skip"]


class F2OCLStrategyKeywords(F2OCLKeywords, StrategyKeywords, total=False):
    """Keywords of :class:`avalanche_f2ocl.F2OCLStrategy`."""


class FrozenStrategyKeywords(FrozenKeywords, StrategyKeywords, total=False):
    """Keywords of :class:`avalanche_f2ocl.FrozenBackbone`."""
