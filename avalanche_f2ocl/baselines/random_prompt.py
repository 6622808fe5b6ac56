"""F2OCL with prompts that are never trained, which shows the effect of extra tokens alone."""

from avalanche_f2ocl.models.random_prompt import RandomPromptModel
from avalanche_f2ocl.strategies.f2ocl import F2OCLStrategy


class RandomPrompt(F2OCLStrategy):
    """F2OCL without the contrastive loss: prompts keep their initial values.

    It shows what training is worth, since prompts move embeddings whether or not they are trained.

    Args:
        **options: options of :class:`avalanche_f2ocl.F2OCLStrategy`; those of the loss and the optimiser have no
            effect.

    Example:
        >>> RandomPrompt(backbone="micro_vit", evaluator=None).model.passes
        0
    """

    model_type = RandomPromptModel
