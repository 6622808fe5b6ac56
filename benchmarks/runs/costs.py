"""What a method costs: computing time by images, and the bytes that it keeps."""

import time
from collections import Counter
from typing import Any

import torch
from avalanche.core import SupervisedPlugin

from avalanche_f2ocl.rehearsal.check import held_bytes
from avalanche_f2ocl.strategies.base import BaseStrategy
from avalanche_f2ocl.strategies.quiet_evaluator import QuietEvaluator

COSTS = ("train_seconds_per_1000", "test_seconds_per_1000", "kept_bytes")
"""Names in records: seconds of CPU time over all threads (wall-clock time on a GPU), and bytes without the backbone."""


class Costs:
    """Times a strategy's own work: from the beginning of a training experience to its end, and evaluated mini-batches.

    It leaves out the work of Avalanche around them and metrics, including heads that learn alongside the strategy's
    own. Solving at the first prediction after an update counts as testing; work at a boundary counts as training.

    Args:
        strategy: a strategy that has not been trained; it gets one plugin before all others, and one before the
            evaluator.
    """

    def __init__(self, strategy: BaseStrategy) -> None:
        self.strategy = strategy
        self._seconds: Counter[str] = Counter()
        self._images: Counter[str] = Counter()
        self._began = 0.0
        evaluator = next(i for i, plugin in enumerate(strategy.plugins) if isinstance(plugin, QuietEvaluator))
        strategy.plugins.insert(evaluator, _Ends(self))
        strategy.plugins.insert(0, _Begins(self))

    def begin(self) -> None:
        self._began = self._now()

    def end(self, part: str, images: int = 0) -> None:
        self._seconds[part] += self._now() - self._began
        self._images[part] += images

    def figures(self) -> dict[str, Any]:
        """The costs by the names of :data:`COSTS`; call it after the last evaluation."""
        times = {
            f"{part}_seconds_per_1000": round(1000 * self._seconds[part] / self._images[part], 4)
            for part in ("train", "test")
        }
        return times | {"kept_bytes": held_bytes(self.strategy) - held_bytes(self.strategy.model.backbone)}

    def _now(self) -> float:
        if self.strategy.device.type == "cuda":
            torch.cuda.synchronize(self.strategy.device)
            return time.perf_counter()
        return time.process_time()


class _Begins(SupervisedPlugin):
    def __init__(self, costs: Costs) -> None:
        super().__init__()
        self._costs = costs

    def _begin(self, strategy: Any, **kwargs: Any) -> None:
        self._costs.begin()

    before_training_exp = after_training = before_eval_iteration = _begin


class _Ends(SupervisedPlugin):
    def __init__(self, costs: Costs) -> None:
        super().__init__()
        self._costs = costs

    def after_training_exp(self, strategy: Any, **kwargs: Any) -> None:
        self._costs.end("train", len(strategy.experience.dataset))

    def after_training(self, strategy: Any, **kwargs: Any) -> None:
        self._costs.end("train")

    def after_eval_iteration(self, strategy: Any, **kwargs: Any) -> None:
        self._costs.end("test", len(strategy.mb_y))
