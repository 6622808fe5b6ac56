"""ER: experience replay from a reservoir of images."""

from dataclasses import dataclass
from typing import Any

import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import ReplayPlugin
from avalanche.training.storage_policy import ReservoirSamplingBuffer
from typing_extensions import Unpack

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.baselines.linear import LinearConfig, LinearKeywords, LinearModel
from avalanche_f2ocl.models.base import BaseModel
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.strategies.base import BaseStrategy


@dataclass(frozen=True)
class ERConfig(LinearConfig):
    """Options of ER, checked at construction.

    Args:
        mem_size: number of images stored.
        lr: SGD's step size; the default comes from a sweep, see benchmarks/README.md.
        mask_logits, head_init, readout, normalise, inputs, fit, precision, seed: see
            :class:`avalanche_f2ocl.baselines.linear.LinearConfig`.

    Raises:
        TypeError, ValueError: an option is not allowed.
    """

    mem_size: int = 200
    lr: float = 0.03

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive_int("mem_size", self.mem_size)


class ERKeywords(LinearKeywords, total=False):
    """Keywords of :class:`ER`."""

    config: ERConfig | None
    mem_size: int


class CleanReplayPlugin(ReplayPlugin):
    """Does not store an experience if one of its mini-batches was skipped, but draws as if none had been."""

    def before_train_dataset_adaptation(self, strategy, **kwargs):
        self._skipped, self._draws = strategy.skipped, torch.random.get_rng_state()

    def after_training_exp(self, strategy, **kwargs):
        if strategy.skipped == self._skipped:
            self.storage_policy.post_adapt(strategy, strategy.experience)
        else:
            torch.random.set_rng_state(self._draws)


class Reservoir(ReservoirSamplingBuffer):
    """Avalanche's reservoir, from which a class can also be removed."""

    buffer: Any
    _buffer_weights: Any

    def forget_class(self, class_id: int, row: int) -> None:
        """Drops the images of a class that the model forgets."""
        if len(self.buffer) > 0:
            kept = [i for i, label in enumerate(self.buffer.targets) if label != class_id]
            self.buffer, self._buffer_weights = self.buffer.subset(kept), self._buffer_weights[kept]


class ERModel(LinearModel):
    """The linear head, with ER's options.

    Example:
        >>> ERModel("micro_vit").config.mem_size
        200
    """

    config_type = ERConfig
    config: ERConfig


class ER(BaseStrategy):
    """A linear head that is trained on each mini-batch and as many images from a reservoir.

    It is not rehearsal-free: it stores ``mem_size`` images. Replay and reservoir are Avalanche's
    (``ReplayPlugin``, ``ReservoirSamplingBuffer``); ``model.forget`` also drops a class's images. Run it
    on online streams, since on plain experiences Avalanche fills the buffer only when the experience ends. An
    experience is not stored if one of its mini-batches was skipped (``on_bad_input="skip"``).

    Source: Chaudhry et al., On Tiny Episodic Memories in Continual Learning, 2019.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's (frozen in place).
        weights: local checkpoint for a named backbone; by default timm downloads the weights.
        image_size: side of the images in pixels; by default the backbone's own.
        device: by default CUDA if there is a CUDA device, else the CPU.
        config: all options of :class:`ERConfig` at once.
        **options: single options, which override ``config``, and those of the training loop, see
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`.

    Raises:
        TypeError, ValueError: an option is not allowed.

    Example:
        >>> ER(backbone="micro_vit", mem_size=500, evaluator=None).train_mb_size
        10
    """

    model_type = ERModel
    model: ERModel

    def __init__(self, **options: Unpack[ERKeywords]) -> None:
        super().__init__(**options)

    def method_plugins(self, model: BaseModel) -> list[SupervisedPlugin]:
        reservoir = Reservoir(model.config.mem_size)
        model.followers.append(reservoir)
        return [CleanReplayPlugin(model.config.mem_size, storage_policy=reservoir), *super().method_plugins(model)]

    def own_tensors(self):
        raise NotImplementedError(
            "ER stores images, so it is not saved here: use avalanche.checkpointing.save_checkpoint, "
            "which pickles them with the strategy"
        )

    def train(self, *args, **kwargs):
        # Avalanche's reservoir and loaders draw from the global generator.
        seed = generator(self.seed, "replay", self.model.batches).initial_seed()
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would reseed CUDA, too, for good
            return super().train(*args, **kwargs)
