"""What takes the place of Avalanche's handling of data loaders, optimisers and memory."""

from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

from avalanche_f2ocl.rng import generator


class NoOptimizer:
    """Stands where Avalanche expects an optimiser; there is nothing to train.

    Attributes:
        state: of the parameters; empty.
    """

    def __init__(self) -> None:
        self.state: dict = {}

    def zero_grad(self) -> None:
        """Does nothing."""

    def step(self) -> None:
        """Does nothing."""


class TemplateOverrides:
    """Mixed into a strategy before Avalanche's template: loaders draw from the seed, the optimiser is the model's."""

    if TYPE_CHECKING:  # what the template beside it has
        model: Any
        adapted_dataset: Any
        train_mb_size: int
        eval_mb_size: int
        seed: int
        clock: Any
        _obtain_common_dataloader_parameters: Any

    def train(self, experiences, eval_streams=None, **kwargs):
        """Avalanche's; at its end, whatever ends it, nothing of a mini-batch stays in the memory of CUDA graphs."""
        with self.model.backbone.forgetting_passes():
            return super().train(experiences, eval_streams, **kwargs)  # type: ignore[misc]

    def make_train_dataloader(self, shuffle=True, drop_last=False, **kwargs):
        """Avalanche's balances tasks where there are any, and shuffles by the global generator; this one does not."""
        # A mini-experience that is one mini-batch stays in the stream's order.
        shuffle = shuffle and len(self.adapted_dataset) > self.train_mb_size
        draw = generator(self.seed, "shuffle", self.clock.train_exp_counter)
        self.dataloader = self._loader(
            kwargs, draw, batch_size=self.train_mb_size, shuffle=shuffle, drop_last=drop_last
        )

    def make_eval_dataloader(self, shuffle=False, **kwargs):
        """Avalanche's splits the data among processes; here they split each mini-batch."""
        # A loader draws even where it does not shuffle.
        draw = generator(self.seed, "eval", self.clock.train_iterations)
        self.dataloader = self._loader(kwargs, draw, batch_size=self.eval_mb_size, shuffle=shuffle)

    def _loader(self, given, draw=None, **options):
        # What is on a device already cannot be pinned.
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
        """Nothing to warn of: plugins see the whole mini-batch in every process."""
        return True

    def make_optimizer(self, **kwargs):
        """Nothing to do: the optimiser was made with the strategy and follows the model's growth."""

    def check_model_and_optimizer(self, **kwargs):
        """Nothing to do, see :meth:`make_optimizer`."""

    def model_adaptation(self, model=None):
        """Nothing to do: the model grows by itself, and is on the device since train or eval began."""
        return self.model if model is None else model
