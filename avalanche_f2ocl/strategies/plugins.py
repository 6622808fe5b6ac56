"""The parts of F2OCL's training step as Avalanche plugins, one callback each.

They work with any strategy whose model is an :class:`avalanche_f2ocl.models.f2ocl.F2OCLModel`, attached in the
order growth, contrastive loss, keys, prototypes. The strategy's own criterion should give zero (the
contrastive loss is added to it) and its optimiser should be ``model.optimizer`` or another that takes
sparse gradients.

Example:
    >>> from avalanche.training.templates import SupervisedTemplate
    >>> from avalanche_f2ocl import F2OCLModel
    >>> model = F2OCLModel("micro_vit")
    >>> strategy = SupervisedTemplate(
    ...     model=model,
    ...     optimizer=model.optimizer,
    ...     criterion=lambda output, target: output.new_zeros(()),
    ...     plugins=[PromptGrowthPlugin(), ContrastivePromptPlugin(), KeyUpdatePlugin(), PrototypeUpdatePlugin()],
    ...     evaluator=None,
    ... )
"""

from avalanche.core import SupervisedPlugin

from avalanche_f2ocl.checks import check_labels
from avalanche_f2ocl.models.batch import OnlineBatch


def online_batch(strategy) -> OnlineBatch:
    """The mini-batch that :class:`PromptGrowthPlugin` began.

    Raises:
        RuntimeError: no such plugin comes first.
    """
    batch = getattr(strategy, "online_batch", None)
    if batch is None:
        raise RuntimeError("no mini-batch was begun: attach PromptGrowthPlugin() before the other F2OCL plugins")
    return batch


class PromptGrowthPlugin(SupervisedPlugin):
    """Makes room for each class that is new in the mini-batch: id, head row and, where there are, prompt and key."""

    def before_training_iteration(self, strategy, **kwargs):
        checked = getattr(strategy, "checked_minibatch", None)
        if checked is None or any(now is not then for now, then in zip(strategy.mbatch, checked, strict=False)):
            # A strategy that does not check on the host, or another plugin has changed the mini-batch.
            strategy.model.check(strategy.mb_x)
            strategy.mb_labels = check_labels(strategy.mb_y, len(strategy.mb_x))
        strategy.online_batch = strategy.model.begin_batch(strategy.mb_x, strategy.mb_labels)


class ContrastivePromptPlugin(SupervisedPlugin):
    """Adds the contrastive prompt loss (Eqs. 3-7), and repeats the step on the same mini-batch.

    Args:
        passes: optimiser steps per mini-batch; the first is the strategy's own.
    """

    def __init__(self, passes: int = 1):
        super().__init__()
        self.passes = passes

    def before_backward(self, strategy, **kwargs):
        strategy.loss += strategy.model.contrastive_loss(online_batch(strategy))

    def after_update(self, strategy, **kwargs):
        for _ in range(self.passes - 1):
            strategy.optimizer.zero_grad()
            strategy.model.contrastive_loss(online_batch(strategy)).backward()
            strategy.optimizer.step()


class KeyUpdatePlugin(SupervisedPlugin):
    """Moves the keys of the mini-batch's classes (Eq. 9)."""

    def after_training_iteration(self, strategy, **kwargs):
        strategy.model.update_keys(online_batch(strategy))


class PrototypeUpdatePlugin(SupervisedPlugin):
    """Takes the mini-batch, re-encoded under the updated prompts, into prototypes and counts (Eq. 8)."""

    def after_training_iteration(self, strategy, **kwargs):
        strategy.model.update_prototypes(online_batch(strategy))
        strategy.online_batch = None
