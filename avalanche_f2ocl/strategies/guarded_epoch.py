"""Avalanche's training epoch, in which a mini-batch is learned as a whole or not at all."""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from operator import length_hint
from typing import TYPE_CHECKING, Any

import torch

from avalanche_f2ocl.ranks import OutOfStep, agree, world_size
from avalanche_f2ocl.state.undo import Undo


class GuardedEpoch:
    """Mixin, placed before Avalanche's template, that undoes failed mini-batches and skips bad ones.

    It also skips the mini-batches that a checkpoint has learned already.
    """

    if TYPE_CHECKING:  # attributes of the strategy that it is mixed into
        undo: Undo | None
        model: Any
        optimizer: Any
        dataloader: Any
        clock: Any
        is_training: bool
        on_bad_input: str
        skipped: int
        catching_up_batches: int
        training_batch: Any
        _stop_training: bool
        _forget_minibatch: Any

    def training_epoch(self, **kwargs):
        """Avalanche's ``training_epoch``, one mini-batch at a time, so that a failed mini-batch can be undone."""
        loader = self.dataloader
        for minibatch in self._fetched():
            self.dataloader = [minibatch]
            self._begun = False
            try:
                with self.model.lock, self.model.undo(self.optimizer) as self.undo:
                    super().training_epoch(**kwargs)  # type: ignore[misc]
            except BaseException as error:
                # With several processes, the others have not run out of memory and are waiting.
                out_of_memory = isinstance(error, torch.cuda.OutOfMemoryError) and world_size() == 1
                self._pass_over(error, bad_input=not self._begun or out_of_memory)
            finally:
                self.dataloader = loader
                self.undo = None
            if self._stop_training:
                break

    def _before_training_iteration(self, **kwargs):
        self._begun = True
        super()._before_training_iteration(**kwargs)  # type: ignore[misc]
        if self.training_batch is not None and self.undo is not None:
            self.undo.save_rows(self.training_batch.class_rows)

    def _fetched(self) -> Iterator:
        """The mini-batches of the data loader that can be fetched and are not known to a checkpoint."""
        minibatches, failures = iter(self.dataloader), 0
        while True:
            try:
                minibatch = next(minibatches)
            except StopIteration:
                return
            except Exception as error:
                failures += 1
                if not self.catching_up_batches:
                    self._say_unusable()
                # A loader with more failures than mini-batches will not recover.
                self._pass_over(error, bad_input=failures <= length_hint(self.dataloader, 0))
            else:
                if self.catching_up_batches:
                    self._count_known()
                else:
                    yield minibatch

    def _count_known(self) -> None:
        """Counts a mini-batch that the checkpoint has learned or skipped."""
        self.catching_up_batches -= 1
        self.clock.after_training_iteration(self)

    def _pass_over(self, error: BaseException, bad_input: bool) -> None:
        self._forget_minibatch()
        bad_input = bad_input and isinstance(error, Exception) and not isinstance(error, OutOfStep)
        if self.on_bad_input == "raise" or not bad_input:
            raise error
        if self.catching_up_batches:
            self._count_known()
            return
        self.clock.after_training_iteration(self)
        if self.skipped == 0:
            warnings.warn(
                f"a mini-batch was skipped: {type(error).__name__}: {error} (on_bad_input='skip'; "
                "strategy.skipped counts it and later ones, which are skipped silently)",
                stacklevel=2,
            )
        self.skipped += 1

    def _say_unusable(self) -> None:
        """Tells the other processes that the mini-batch is unusable, so that they skip it or raise, too."""
        with suppress(ValueError):
            if self.is_training:
                agree(None)
