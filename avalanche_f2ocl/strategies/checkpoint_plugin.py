"""Checkpoints while a strategy trains."""

import time
from pathlib import Path

from avalanche.core import SupervisedPlugin

from avalanche_f2ocl.arguments import check_positive, check_positive_int


class CheckpointPlugin(SupervisedPlugin):
    """Saves the strategy between mini-batches, for ``strategy.resume(path)``.

    Once enough mini-batches or seconds have passed since the last file, a new one is written before the next mini-batch
    begins, or when ``train`` ends. Each file replaces the one before as a whole.

    Args:
        path: path of the file.
        every_batches: mini-batches between two files.
        every_seconds: seconds between two files.

    Raises:
        TypeError, ValueError: an interval is out of range, or none is given.

    Example:
        >>> from avalanche_f2ocl import F2OCLStrategy
        >>> plugin = CheckpointPlugin("run.safetensors", every_batches=500)
        >>> strategy = F2OCLStrategy(backbone="micro_vit", plugins=[plugin], evaluator=None)
        >>> strategy.resume("run.safetensors", missing_ok=True)
        False
    """

    def __init__(self, path: str | Path, every_batches: int | None = None, every_seconds: float | None = None):
        super().__init__()
        if every_batches is None and every_seconds is None:
            raise ValueError("CheckpointPlugin needs every_batches=... or every_seconds=..., or both")
        if every_batches is not None:
            check_positive_int("every_batches", every_batches)
        if every_seconds is not None:
            check_positive("every_seconds", every_seconds)
        self.path, self.every_batches, self.every_seconds = Path(path), every_batches, every_seconds
        self._saved_at, self._saved_when = 0, time.monotonic()

    def before_training_iteration(self, strategy, **kwargs):
        self._save_if_due(strategy)

    def after_training(self, strategy, **kwargs):
        self._save_if_due(strategy)

    def _save_if_due(self, strategy):
        done = strategy.clock.train_iterations
        if strategy.catching_up or done == self._saved_at:
            self._saved_at = done
            return
        enough_batches = self.every_batches is not None and done - self._saved_at >= self.every_batches
        seconds = time.monotonic() - self._saved_when
        if enough_batches or (self.every_seconds is not None and seconds >= self.every_seconds):
            strategy.save(self.path)
            self._saved_at, self._saved_when = done, time.monotonic()
