"""What F2OCL's phases note about a mini-batch between them."""

from functools import cached_property

from torch import Tensor

from avalanche_f2ocl.models.batch import TrainingBatch
from avalanche_f2ocl.models.predicting import Unprompted


class F2OCLBatch(TrainingBatch):
    """A training mini-batch of :class:`avalanche_f2ocl.F2OCLModel`.

    Attributes:
        encoded: the pass without prompts.
        prompt_rows: rows of the prompts that it is encoded under, ``(P,)`` int64; set when first asked for.
        zoom: of what passes with prompts see, see :class:`avalanche_f2ocl.config.F2OCLConfig`.
        initial: ``(B, D)``, each sample's stand-in for the prototype of a class that is new in this
            mini-batch; set by the first pass.
        start: ``(B, D)``, the embeddings before the first step; None where the prompt takes none.
        before: mean over the mini-batch of what is computed under its prompt, ``(E,)``, before the prompt's step.
    """

    encoded: Unprompted
    prompt_rows: Tensor | None = None
    initial: Tensor | None = None
    start: Tensor | None = None
    before: Tensor | None = None
    zoom: float = 1.0

    @property
    def q(self) -> Tensor:  # type: ignore[override]  # from the pass that also gives layers
        return self.encoded.q

    @cached_property
    def prompted_tokens(self) -> Tensor:
        """``(B, T, D)``, of what passes with prompts see."""
        return self.tokens if self.zoom == 1 else self._backbone.tokens(self.images, self.zoom)

    @cached_property
    def first(self) -> Tensor:
        """Index of the first sample of each sample's class, ``(B,)`` int64."""
        return (self.rows.unsqueeze(1) == self.rows.unsqueeze(0)).float().argmax(1)
