"""Quantities to watch in training, for Avalanche's loggers: loss, gradient, prompts, chosen keys."""

import torch
from avalanche.evaluation import PluginMetric
from avalanche.evaluation.metric_results import AlternativeValues, MetricValue
from avalanche.evaluation.metric_utils import get_metric_name
from avalanche.evaluation.metrics import loss_metrics


class _Last(PluginMetric):
    """A metric whose result is the last value that it emitted."""

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def reset(self) -> None:
        self.last: float | None = None

    def result(self) -> float | None:
        return self.last

    def __str__(self) -> str:
        return type(self).__name__


class GradientNorm(_Last):
    """Length of the gradient of all trained parameters, at each optimiser step.

    It waits for the device at every step, so leave it out when you measure time.

    Example:
        >>> str(GradientNorm())
        'GradientNorm'
    """

    def before_update(self, strategy):
        gradients = [p.grad for p in strategy.model.parameters() if p.grad is not None]
        # A sparse gradient has only the rows of the mini-batch.
        values = [(g.coalesce().values() if g.is_sparse else g).flatten() for g in gradients]
        if values:
            self.last = float(torch.cat(values).norm())
            return [_value(self, "GradientNorm", self.last, strategy)]


class PromptNorm(_Last):
    """Mean length of prompt tokens, over tokens and prompts, at each evaluation; for strategies with prompts.

    Example:
        >>> str(PromptNorm())
        'PromptNorm'
    """

    @torch.no_grad()
    def after_eval(self, strategy):
        pool = getattr(strategy.model, "pool", None)
        if pool is None or len(strategy.model.class_ids) == 0:
            return None
        self.last = float(pool.used("prompts").norm(dim=2).mean())
        return [_value(self, "PromptNorm", self.last, strategy)]


class ChosenKeys(PluginMetric):
    """A histogram of the classes whose prompts an evaluation's images chose; for strategies with keys.

    Loggers without histograms (text, CSV) get the share of the classes so far that were chosen at least once.

    Example:
        >>> str(ChosenKeys()), ChosenKeys().result()
        ('ChosenKeys', {})
    """

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def reset(self) -> None:
        self._rows: list[torch.Tensor] = []
        self.counts: dict[int, int] = {}

    def result(self) -> dict[int, int]:
        """Number of images by the class whose key was nearest, at the last evaluation."""
        return self.counts

    def before_eval(self, strategy):
        self.reset()

    def after_eval_iteration(self, strategy):
        prediction = getattr(strategy, "mb_prediction", None)
        # Before training there are no keys.
        if prediction is not None and prediction.key_rows is not None and prediction.key_rows.shape[1] > 0:
            self._rows.append(prediction.key_rows[:, 0])

    def after_eval(self, strategy):
        if not self._rows:
            return None
        chosen = strategy.model.class_ids[torch.cat(self._rows)].cpu()
        self._rows = []
        ids, counts = chosen.unique(return_counts=True)
        self.counts = dict(zip(ids.tolist(), counts.tolist(), strict=True))
        share = len(ids) / len(strategy.model.class_ids)
        return [_value(self, "ChosenKeys", AlternativeValues(chosen, share), strategy)]

    def __str__(self) -> str:
        return "ChosenKeys"


class SkippedBatches(PluginMetric):
    """Number of training mini-batches skipped so far under ``on_bad_input="skip"``, after each evaluation.

    Example:
        >>> str(SkippedBatches()), SkippedBatches().result()
        ('SkippedBatches', 0)
    """

    def __init__(self):
        super().__init__()
        self.reset()

    def reset(self) -> None:
        self.skipped = 0

    def result(self) -> int:
        return self.skipped

    def after_eval(self, strategy):
        self.skipped = getattr(strategy, "skipped", 0)
        name = get_metric_name(str(self), strategy, add_task=False)
        return [MetricValue(self, name, self.skipped, strategy.clock.train_iterations)]

    def __str__(self) -> str:
        return "SkippedBatches"


def training_metrics() -> list[PluginMetric]:
    """Loss and gradient length at each mini-batch; length of prompts and chosen keys at each evaluation.

    The metrics are for Avalanche's ``EvaluationPlugin``, in addition to :func:`avalanche_f2ocl.f2ocl_metrics`.

    Example:
        >>> [str(metric) for metric in training_metrics()]
        ['Loss_MB', 'GradientNorm', 'PromptNorm', 'ChosenKeys']
    """
    return [*loss_metrics(minibatch=True), GradientNorm(), PromptNorm(), ChosenKeys()]


def _value(metric: PluginMetric, name: str, value, strategy) -> MetricValue:
    full = get_metric_name(name, strategy, add_task=False)
    return MetricValue(metric, full, value, strategy.clock.train_iterations)
