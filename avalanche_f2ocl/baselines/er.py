"""ER: experience replay from a reservoir of images."""

from collections.abc import Sequence
from typing import Any

import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import ReplayPlugin
from avalanche.training.storage_policy import ReservoirSamplingBuffer

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.baselines.linear import LinearStrategy
from avalanche_f2ocl.rng import generator


class CleanReplayPlugin(ReplayPlugin):
    """Stores no experience of which a mini-batch was skipped, and draws as if it had not been."""

    def before_train_dataset_adaptation(self, strategy, **kwargs):
        self._skipped, self._draws = strategy.skipped, torch.random.get_rng_state()

    def after_training_exp(self, strategy, **kwargs):
        if strategy.skipped == self._skipped:
            super().after_training_exp(strategy, **kwargs)
        else:
            torch.random.set_rng_state(self._draws)


class Reservoir(ReservoirSamplingBuffer):
    """Avalanche's reservoir, which can let go of a class."""

    buffer: Any
    _buffer_weights: Any

    def forget_class(self, class_id: int, row: int) -> None:
        """Drops the images of a class that the model forgets."""
        if len(self.buffer) > 0:
            kept = [i for i, label in enumerate(self.buffer.targets) if label != class_id]
            self.buffer, self._buffer_weights = self.buffer.subset(kept), self._buffer_weights[kept]


class ER(LinearStrategy):
    """Linear head trained on each mini-batch and as many images from a reservoir.

    Not rehearsal-free: it stores ``mem_size`` images. Replay and reservoir are Avalanche's
    (:class:`ReplayPlugin`, :class:`ReservoirSamplingBuffer`); ``model.forget`` also drops a class's images. Run it
    on online streams: on plain experiences Avalanche fills the buffer only when the experience ends. An experience
    of which a mini-batch was skipped (``on_bad_input="skip"``) is not stored.

    Source: Chaudhry et al., On Tiny Episodic Memories in Continual Learning, 2019.

    Args:
        mem_size: images stored.
        lr: SGD's step size; the default comes from a sweep, see benchmarks/README.md.
        **options: as :class:`avalanche_f2ocl.baselines.linear.LinearStrategy`.

    Raises:
        TypeError, ValueError: ``mem_size`` is no positive int, or as the base.

    Example:
        >>> ER(backbone="micro_vit", mem_size=500, evaluator=None).train_mb_size
        10
    """

    def __init__(
        self, *, mem_size: int = 200, lr: float = 0.03, plugins: Sequence[SupervisedPlugin] | None = None, **options
    ):
        check_positive_int("mem_size", mem_size)
        reservoir = Reservoir(mem_size)
        replay = CleanReplayPlugin(mem_size, storage_policy=reservoir)
        super().__init__(lr=lr, plugins=[*(plugins or []), replay], **options)
        self.model.followers.append(reservoir)

    def own_tensors(self):
        raise NotImplementedError(
            "ER stores images, so it is not saved here: use avalanche.checkpointing.save_checkpoint, "
            "which pickles them with the strategy"
        )

    def train(self, *args, **kwargs):
        # Avalanche's reservoir and loaders draw from the global generator.
        seed = generator(self.seed, "replay", self.model.batches).initial_seed()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return super().train(*args, **kwargs)
