"""Corrected versions of Avalanche's forgetting metrics.

Avalanche's metrics compare the experience just trained on with the one evaluated; on an online stream the former
is a mini-experience, and the result is silently wrong (avalanche#1343). They also use the first accuracy, while the
paper uses the best.
"""

import warnings
from collections.abc import Iterable

from avalanche.evaluation import PluginMetric
from avalanche.evaluation.metrics.forgetting_bwt import (
    ExperienceForgetting,
    Forgetting,
    StreamForgetting,
)

from avalanche_f2ocl.metrics.groups import origin


class _BestForgetting(Forgetting):
    """Best earlier value minus the last; Avalanche's metric uses the first value."""

    def reset_last(self) -> None:
        for key, value in self.last.items():
            if key in self.initial:
                self.initial[key] = max(self.initial[key], value)
        super().reset_last()


class _Online:
    def __init__(self):
        super().__init__()
        self.forgetting = _BestForgetting()

    def before_training_exp(self, strategy):
        super().before_training_exp(strategy)
        self.train_exp_id = origin(strategy.experience).current_experience


class OnlineExperienceForgetting(_Online, ExperienceForgetting):
    """Avalanche's forgetting per experience, right on online streams: best accuracy so far minus last."""

    def __str__(self) -> str:
        return "OnlineExperienceForgetting"


class OnlineStreamForgetting(_Online, StreamForgetting):
    """Avalanche's mean forgetting over experiences, right on online streams: best accuracy minus last."""

    def __str__(self) -> str:
        return "OnlineStreamForgetting"


BY_TRAINING_EXPERIENCE = (
    "avalanche.evaluation.metrics.forgetting_bwt",
    "avalanche.evaluation.metrics.forward_transfer",
)
"""Avalanche's modules whose metrics mistake a mini-experience for an experience."""


def warn_of_wrong_forgetting(metrics: Iterable[PluginMetric]) -> None:
    """Warns about metrics of Avalanche's that are silently wrong (mostly 0) while training on an online stream.

    Example:
        >>> warn_of_wrong_forgetting([OnlineStreamForgetting()])
    """
    wrong = sorted({type(m).__name__ for m in metrics if type(m).__module__ in BY_TRAINING_EXPERIENCE})
    if wrong:
        warnings.warn(
            f"on an online stream Avalanche's {', '.join(wrong)} mistake mini-experiences for experiences, so their "
            "values are wrong (avalanche#1343): use f2ocl_metrics(), or OnlineExperienceForgetting and "
            "OnlineStreamForgetting of avalanche_f2ocl.metrics",
            stacklevel=2,
        )
