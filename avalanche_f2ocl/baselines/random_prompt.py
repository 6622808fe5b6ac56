"""F2OCL with prompts that are never trained: what extra tokens alone do."""

from avalanche_f2ocl.models.random_prompt import RandomPromptModel
from avalanche_f2ocl.strategies.f2ocl import F2OCLStrategy


class RandomPrompt(F2OCLStrategy):
    """The same pipeline without the contrastive loss: prompts keep their initial values.

    The yardstick for training: prompts move embeddings whether or not they are trained.

    Args:
        **options: as :class:`avalanche_f2ocl.F2OCLStrategy`; those of the loss and the optimiser are idle.

    Example:
        >>> RandomPrompt(backbone="micro_vit", evaluator=None).model.passes
        0
    """

    model_type = RandomPromptModel
