"""How many training mini-batches were skipped, as an Avalanche metric."""

from avalanche.evaluation import PluginMetric
from avalanche.evaluation.metric_results import MetricValue
from avalanche.evaluation.metric_utils import get_metric_name


class SkippedBatches(PluginMetric):
    """Training mini-batches skipped so far under ``on_bad_input="skip"``, after each evaluation.

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
