"""F2OCL with prompts that are never trained: what extra tokens alone do."""

from avalanche_f2ocl.strategies.f2ocl import F2OCLStrategy
from avalanche_f2ocl.strategies.plugins import ContrastivePromptPlugin


class RandomPrompt(F2OCLStrategy):
    """The same pipeline without the contrastive loss: prompts keep their initial values.

    The yardstick for training: prompts move embeddings whether or not they are trained.

    Args:
        **options: as :class:`avalanche_f2ocl.F2OCLStrategy`; those of the loss and the optimiser are idle.

    Example:
        >>> strategy = RandomPrompt(backbone="micro_vit", evaluator=None)
        >>> any(isinstance(plugin, ContrastivePromptPlugin) for plugin in strategy.plugins)
        False
    """

    plugins: list

    def __init__(self, **options):
        super().__init__(**options)
        self.plugins = [plugin for plugin in self.plugins if not isinstance(plugin, ContrastivePromptPlugin)]
