"""F2OCL with prompts that are never trained."""

from avalanche_f2ocl.models.f2ocl import F2OCLModel


class RandomPromptModel(F2OCLModel):
    """The same pipeline without the contrastive loss: prompts keep their initial values.

    Args:
        backbone, config, options: those of :class:`F2OCLModel`; options of the loss and the optimiser have no effect.

    Example:
        >>> RandomPromptModel("micro_vit").passes
        0
    """

    saved_as = "RandomPrompt"

    @property
    def passes(self) -> int:
        return 0
