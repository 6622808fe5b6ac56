"""Replacements for Avalanche's handling of data loaders, optimisers and memory."""

from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

from avalanche_f2ocl.rng import generator


class NoOptimizer:
    """A placeholder where Avalanche expects an optimiser but there is nothing to train.

    Attributes:
        state: state of the parameters; empty.
    """

    def __init__(self) -> None:
        self.state: dict = {}

    def zero_grad(self) -> None:
        """Does nothing."""

    def step(self) -> None:
        """Does nothing."""


class TemplateOverrides:
    """Mixed into a strategy before Avalanche's template: loaders draw from the seed, the optimiser is the model's."""

    if TYPE_CHECKING:  # attributes of the template that it is mixed with
        model: Any
        adapted_dataset: Any
        train_mb_size: int
        eval_mb_size: int
        seed: int
        clock: Any
        _obtain_common_dataloader_parameters: Any

    def train(self, experiences, eval_streams=None, **kwargs):
        """Avalanche's ``train``; when it ends, even by an error, CUDA graphs hold nothing of a mini-batch any more."""
        with self.model.backbone.forgetting_passes():
            return super().train(experiences, eval_streams, **kwargs)  # type: ignore[misc]

    def make_train_dataloader(self, shuffle=True, drop_last=False, **kwargs):
        """A loader that, unlike Avalanche's, does not balance tasks and does not shuffle by the global generator."""
        # A mini-experience of one mini-batch stays in the stream's order.
        shuffle = shuffle and len(self.adapted_dataset) > self.train_mb_size
        draw = generator(self.seed, "shuffle", self.clock.train_exp_counter)
        self.dataloader = self._loader(
            kwargs, draw, batch_size=self.train_mb_size, shuffle=shuffle, drop_last=drop_last
        )

    def make_eval_dataloader(self, shuffle=False, **kwargs):
        """A loader for all the data: Avalanche's splits the data among processes, here they split each mini-batch."""
        # A loader draws a random number even if it does not shuffle.
        draw = generator(self.seed, "eval", self.clock.train_iterations)
        self.dataloader = self._loader(kwargs, draw, batch_size=self.eval_mb_size, shuffle=shuffle)

    def _loader(self, given, draw=None, **options):
        # Tensors that are already on a device cannot be pinned.
        device = getattr(self.adapted_dataset, "device", None)
        pin_memory = False if device is not None and device.type != "cpu" else given.get("pin_memory")
        options = self._obtain_common_dataloader_parameters(
            num_workers=given.get("num_workers", 0),
            pin_memory=pin_memory,
            persistent_workers=given.get("persistent_workers", False),
            **options,
        )
        collate = getattr(self.adapted_dataset, "collate_fn", None)
        return DataLoader(self.adapted_dataset, collate_fn=collate, generator=draw, **options)

    def _check_distributed_training_compatibility(self):
        """There is nothing to warn about: plugins see the whole mini-batch in every process."""
        return True

    def make_optimizer(self, **kwargs):
        """Does nothing: the optimiser was made with the strategy and follows the model's growth."""

    def check_model_and_optimizer(self, **kwargs):
        """Does nothing: there is nothing to adapt, see :meth:`make_optimizer`."""

    def model_adaptation(self, model=None):
        """Does nothing: the model grows by itself, and has been on the device since train or eval began."""
        return self.model if model is None else model
