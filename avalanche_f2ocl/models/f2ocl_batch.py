"""What F2OCL's phases share about a mini-batch."""

from functools import cached_property

from torch import Tensor

from avalanche_f2ocl.models.batch import TrainingBatch
from avalanche_f2ocl.models.prediction import Unprompted


class F2OCLBatch(TrainingBatch):
    """A training mini-batch of :class:`avalanche_f2ocl.F2OCLModel`.

    Attributes:
        encoded: result of the pass without prompts.
        prompt_rows: rows of the prompts that the mini-batch is encoded under, ``(P,)`` int64; set at first use.
        zoom: enlargement of the images in passes with prompts, see :class:`avalanche_f2ocl.config.F2OCLConfig`.
        initial: ``(B, D)``, for each sample a substitute for its class's prototype, used if the class is new in this
            mini-batch; set by the first pass.
        start: ``(B, D)``, the embeddings before the first step; None if the prompt takes no step.
        before: mean over the mini-batch of what is computed under its prompt, ``(E,)``, before the prompt's step.
    """

    encoded: Unprompted
    prompt_rows: Tensor | None = None
    initial: Tensor | None = None
    start: Tensor | None = None
    before: Tensor | None = None
    zoom: float = 1.0

    @property
    def q(self) -> Tensor:  # type: ignore[override]  # comes from the pass that also gives layers
        return self.encoded.q

    @cached_property
    def prompted_tokens(self) -> Tensor:
        """Tokens ``(B, T, D)`` of the images as passes with prompts see them."""
        return self.tokens if self.zoom == 1 else self._backbone.tokens(self.images, self.zoom)

    @cached_property
    def first(self) -> Tensor:
        """Index of the first sample of each sample's class, ``(B,)`` int64."""
        return (self.rows.unsqueeze(1) == self.rows.unsqueeze(0)).float().argmax(1)
