"""How well keys find the right prompts, as Avalanche plugin metrics."""

import torch
from torch import Tensor

from avalanche_f2ocl.metrics.groups import GroupMetric
from avalanche_f2ocl.rng import generator


class KeyAccuracy(GroupMetric):
    """A_k: how often the nearest key is that of the sample's class.

    Example:
        >>> str(KeyAccuracy())
        'A_k'
    """

    def __init__(self):
        super().__init__("A_k")

    def right(self, strategy) -> Tensor | None:
        if not _has_prompts(strategy):
            return None
        return strategy.model.class_ids[strategy.mb_prediction.key_rows[:, 0]] == strategy.mb_y


class UpperBound(GroupMetric):
    """UB: accuracy when every sample gets its own class's prompt; at the end of the stream only.

    Example:
        >>> str(UpperBound())
        'UB'
    """

    def __init__(self):
        super().__init__("UB", at_end=True)

    def right(self, strategy) -> Tensor | None:
        if not _has_prompts(strategy):
            return None
        return _right_under(strategy, strategy.model.classes.rows(strategy.mb_labels))


class RandomKeyAccuracy(GroupMetric):
    """Accuracy when every sample gets the prompt of a random class; at the end of the stream only.

    Example:
        >>> str(RandomKeyAccuracy())
        'random_key'
    """

    def __init__(self):
        super().__init__("random_key", at_end=True)

    def before_eval(self, strategy):
        super().before_eval(strategy)
        self._draw = generator(getattr(strategy, "seed", 0), "random-key")

    def right(self, strategy) -> Tensor | None:
        if not _has_prompts(strategy):
            return None
        rows = torch.randint(len(strategy.model.classes), strategy.mb_labels.shape, generator=self._draw)
        return _right_under(strategy, rows)


def _has_prompts(strategy) -> bool:
    """Whether the strategy's predictions retrieve prompts; those of Avalanche's own strategies, for example, do not."""
    return getattr(getattr(strategy, "mb_prediction", None), "key_rows", None) is not None


def _right_under(strategy, rows: Tensor) -> Tensor:
    """Right answers under the prompts of ``rows (B,)`` on the CPU; -1 (no such prompt) is never right."""
    rows = rows.to(strategy.device)
    prediction = strategy.mb_prediction
    logits = strategy.model.logits_under(prediction.tokens, rows.clamp(min=0).unsqueeze(1), prediction.unprompted)
    return (strategy.model.class_ids[logits.argmax(1)] == strategy.mb_y) & (rows >= 0)
