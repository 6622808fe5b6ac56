"""The phases of a training mini-batch as Avalanche plugins, one each.

They work with any strategy whose model is a :class:`avalanche_f2ocl.models.base.BaseModel`. Attach them in the order of
the model's phases: begin, loss, updates; :func:`phase_plugins` makes them in this order. The strategy's own criterion
should give zero, since the model's loss is added to it, and its optimiser should be ``model.optimizer`` or another that
takes sparse gradients.

Example:
    >>> from avalanche.training.templates import SupervisedTemplate
    >>> from avalanche_f2ocl import F2OCLModel
    >>> model = F2OCLModel("micro_vit")
    >>> strategy = SupervisedTemplate(
    ...     model=model,
    ...     optimizer=model.optimizer,
    ...     criterion=lambda output, target: output.new_zeros(()),
    ...     plugins=[BeginBatchPlugin(), ContrastivePromptPlugin(), KeyUpdatePlugin(), PrototypeUpdatePlugin()],
    ...     evaluator=None,
    ... )
"""

from collections.abc import Callable
from typing import Any

from avalanche.core import SupervisedPlugin

from avalanche_f2ocl.checks import check_labels
from avalanche_f2ocl.models.base import BaseModel


def training_batch(strategy: Any) -> Any:
    """The mini-batch that :class:`BeginBatchPlugin` began.

    Raises:
        RuntimeError: no :class:`BeginBatchPlugin` comes before the other plugins.
    """
    batch = getattr(strategy, "training_batch", None)
    if batch is None:
        raise RuntimeError("no mini-batch was begun: attach BeginBatchPlugin() before the other F2OCL plugins")
    return batch


def phase_plugins(model: BaseModel) -> list[SupervisedPlugin]:
    """The phases of a model's :meth:`BaseModel.learn_batch`, as plugins for Avalanche's loop.

    Example:
        >>> from avalanche_f2ocl import ViTNCMModel
        >>> [type(plugin).__name__ for plugin in phase_plugins(ViTNCMModel("micro_vit"))]
        ['BeginBatchPlugin', 'PrototypeUpdatePlugin']
    """
    steps = [LossPlugin(model.passes)] if model.passes else []
    names = [update.__name__ for update in model.updates]
    updates = [_NAMED[name]() if name in _NAMED else UpdatePlugin(name, name == names[-1]) for name in names]
    return [BeginBatchPlugin(), *steps, *updates]


class BeginBatchPlugin(SupervisedPlugin):
    """Begins the mini-batch: makes room for each class that is new, and prepares what the phases share.

    It comes before all other plugins of a strategy that learn.

    Example:
        >>> from avalanche_f2ocl import ViTNCMModel
        >>> isinstance(phase_plugins(ViTNCMModel("micro_vit"))[0], BeginBatchPlugin)
        True
    """

    def before_training_iteration(self, strategy, **kwargs):
        checked = getattr(strategy, "checked_minibatch", None)
        if checked is None or any(now is not then for now, then in zip(strategy.mbatch, checked, strict=False)):
            # The strategy does not check on the host, or another plugin has changed the mini-batch.
            strategy.model.check(strategy.mb_x)
            strategy.mb_labels = check_labels(strategy.mb_y, len(strategy.mb_x))
        strategy.training_batch = strategy.model.begin_batch(strategy.mb_x, strategy.mb_labels)


PromptGrowthPlugin = BeginBatchPlugin
"""The name of :class:`BeginBatchPlugin` in version 0.1."""


class LossPlugin(SupervisedPlugin):
    """Adds the model's loss, and repeats the step on the same mini-batch.

    Args:
        passes: optimiser steps per mini-batch; the first is the strategy's own.

    Example:
        >>> LossPlugin(passes=3).passes
        3
    """

    def __init__(self, passes: int = 1):
        super().__init__()
        self.passes = passes

    def before_backward(self, strategy, **kwargs):
        strategy.loss += strategy.model.loss(training_batch(strategy))

    def after_update(self, strategy, **kwargs):
        for _ in range(self.passes - 1):
            strategy.model.take_step(training_batch(strategy), strategy.optimizer)


ContrastivePromptPlugin = LossPlugin
"""The loss plugin of F2OCL, whose loss is the contrastive prompt loss (Eqs. 3-7)."""


class UpdatePlugin(SupervisedPlugin):
    """Calls one of the model's updates.

    Args:
        name: name of the model's method.
        last: whether this update ends the mini-batch.
    """

    def __init__(self, name: str, last: bool):
        super().__init__()
        self.name, self.last = name, last

    def after_training_iteration(self, strategy, **kwargs):
        getattr(strategy.model, self.name)(training_batch(strategy))
        if self.last:
            strategy.training_batch = None


class KeyUpdatePlugin(UpdatePlugin):
    """Moves the keys of the mini-batch's classes (Eq. 9).

    Example:
        >>> KeyUpdatePlugin().name
        'update_keys'
    """

    def __init__(self):
        super().__init__("update_keys", last=False)


class PrototypeUpdatePlugin(UpdatePlugin):
    """Encodes the mini-batch under the updated prompts and adds it to prototypes and counts (Eq. 8).

    Example:
        >>> PrototypeUpdatePlugin().name
        'update_prototypes'
    """

    def __init__(self):
        super().__init__("update_prototypes", last=True)


_NAMED: dict[str, Callable[[], UpdatePlugin]] = {
    "update_keys": KeyUpdatePlugin,
    "update_prototypes": PrototypeUpdatePlugin,
}
