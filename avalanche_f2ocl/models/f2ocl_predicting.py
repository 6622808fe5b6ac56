"""How F2OCL embeds images and predicts: with the prompts of the nearest keys, or with one prompt for all classes."""

import torch
from torch import Tensor

from avalanche_f2ocl.config import F2OCLConfig
from avalanche_f2ocl.heads.features import FeaturePlan, head_features
from avalanche_f2ocl.models.drift import DriftCompensation, NoCompensation
from avalanche_f2ocl.models.early import PassPlan
from avalanche_f2ocl.models.hub import HubModel
from avalanche_f2ocl.models.prediction import Prediction, Unprompted
from avalanche_f2ocl.state.keys import Keys, key_scores
from avalanche_f2ocl.state.prompts import Prompts


class F2OCLPredictor(HubModel):
    """The part of :class:`avalanche_f2ocl.F2OCLModel` that does not learn.

    Attributes:
        plan: which embeddings and layers the head sees.
        pool: the prompts.
        keys: the keys.
        drift: compensates class sums for prompts that have moved since.
        prompted_pass, unprompted_pass: what the passes with and without prompts give.
        familiar: whether familiarity is computed from q, and whether from z.
    """

    config: F2OCLConfig
    plan: FeaturePlan
    pool: Prompts
    keys: Keys
    drift: DriftCompensation | NoCompensation
    prompted_pass: PassPlan
    unprompted_pass: PassPlan
    familiar: tuple[bool, bool]

    @torch.no_grad()
    def predict_batch(self, images: Tensor) -> Prediction:
        """Retrieves each image's prompts by its nearest keys (Eq. 10) and scores it under them (Eq. 11)."""
        tokens, unprompted, key_rows = self.backbone.tokens(images), None, None
        if needs_q(self.config):
            unprompted = self._encode_unprompted(images, tokens)
            if self.pool.found_by_key:
                scores = key_scores(unprompted.q, self.keys.vectors(), self.head.used("counts"))
                key_rows = scores.topk(min(self.config.keys, scores.shape[1]), dim=1).indices
        if self.config.zoom != 1:
            tokens = self.backbone.tokens(images, self.config.zoom)
        rows = tokens.new_zeros(1, 1, dtype=torch.int64) if key_rows is None else key_rows
        logits, z, early = self._scored_under(tokens, rows, unprompted)
        return Prediction(logits, tokens, unprompted, key_rows, embeddings=self._embeddings(unprompted, z, early))

    def _embeddings(self, unprompted: Unprompted | None, z: Tensor | None, early: Tensor | None) -> Tensor:
        """The embeddings that familiarity is computed from, ``(B, parts, D)``; with z if all images share a prompt."""
        q, q_early = (None, None) if unprompted is None else (unprompted.q, unprompted.early)
        uses_q, uses_z = self.familiar
        chosen = (q, uses_q), (z, uses_z), (early if uses_z else q_early, True)
        return torch.stack([part for part, used in chosen if used and part is not None], dim=1)

    @torch.no_grad()
    def logits_under(self, tokens: Tensor, rows: Tensor, unprompted: Unprompted | None) -> Tensor:
        """Scores under given prompts.

        Args:
            tokens: tokens ``(B, T, D)`` of the images as passes with prompts see them.
            rows: rows of the prompts, which are concatenated in this order, ``(B, K)`` int64; ``(1, K)`` for the same
                prompts for all images.
            unprompted: result of the pass without prompts; None if the head does not see q.

        Returns:
            ``(B, C)``.
        """
        return self._scored_under(tokens, rows, unprompted)[0]

    def _scored_under(
        self, tokens: Tensor, rows: Tensor, unprompted: Unprompted | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Scores ``(B, C)`` under given prompts, and what :meth:`_encode` gives, None if the head does not see it."""
        (q, q_layers, _), kind = unprompted or (None, None, None), self.config.head_features
        if kind == "q":
            assert q is not None
            return self.head.logits(q), None, None
        z, layers, early = self._encode(tokens, self.pool.prompts[rows].flatten(1, 2))
        features = head_features(kind, z, q, layers, q_layers)
        return self.head.logits(self.drift.compensated(features, rows)), z, early

    def _encode(
        self, tokens: Tensor, prompts: Tensor, replay: bool = False, with_layers: bool = True
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Embeddings under prompts, the layers if the head needs them, and early patches if familiarity does."""
        plan = self.prompted_pass
        if with_layers and (self.familiar[1] or any(plan.seen)):
            z, layers = self.backbone.encode_layers(tokens, prompts, plan.blocks, plan.grid, replay)
            return z, *plan.parts(layers)
        return self.backbone.encode_tokens(tokens, prompts, replay), None, None

    @torch.no_grad()
    def _encode_unprompted(self, images: Tensor, tokens: Tensor, replay: bool = False) -> Unprompted:
        """Embeddings without prompts, the layers if the head needs them, and early patches if familiarity does."""
        plan = self.unprompted_pass
        if any(plan.seen) or not self.familiar[1]:
            q, layers = self.backbone.query_layers(images, tokens, plan.blocks, plan.grid, replay)
            return Unprompted(q, *plan.parts(layers))
        return Unprompted(self.backbone.query(images, tokens, replay))


def needs_q(config: F2OCLConfig) -> bool:
    """Whether predictions need the embedding without prompts: for keys or for the head."""
    return config.prompt_assignment != "shared" or config.head_features not in ("z", "layers")
