"""F2OCL as a plain PyTorch module: what is saved, exported and served."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from avalanche_f2ocl.backbone.load import load_backbone
from avalanche_f2ocl.config import PRESETS, F2OCLConfig
from avalanche_f2ocl.heads.features import LAST_BLOCKS, feature_count, head_features
from avalanche_f2ocl.heads.make import make_head
from avalanche_f2ocl.losses import contrastive_prompt_loss
from avalanche_f2ocl.models.base import Prediction
from avalanche_f2ocl.models.batch import OnlineBatch
from avalanche_f2ocl.models.saving import SavedModel
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.class_means import ClassMeans
from avalanche_f2ocl.state.keys import GradientKeys, MeanKeys, key_scores
from avalanche_f2ocl.state.prompts import OnePrompt, PromptPool, elect
from avalanche_f2ocl.state.row_adam import RowAdam
from avalanche_f2ocl.state.undo import Undo


class F2OCLModel(SavedModel):
    """Frozen backbone, class prompts, keys and a head on class sums (paper, Algorithm 1).

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a timm ``VisionTransformer``.
        weights: local checkpoint for a named backbone.
        image_size: side in pixels; default the backbone's own.
        config: all options at once.
        device: where it is put; default where the backbone is, for a named one the CPU.
        **options: single options of :class:`avalanche_f2ocl.config.F2OCLConfig`, over ``config``.

    Attributes:
        pool: the prompts.
        keys: the keys.
        prototypes: class means of the prompted embeddings; the head itself, where those are what it sums.
        optimizer: updates the prompts.

    Raises:
        TypeError, ValueError: see :class:`F2OCLConfig` and :func:`avalanche_f2ocl.backbone.weights.load_vit`.

    Example:
        >>> model = F2OCLModel("micro_vit", prompt_length=5)
        >>> images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
        >>> model.learn(images, [7, -3, 7, -3])
        >>> model.class_ids.tolist(), model(images).shape
        ([-3, 7], torch.Size([4, 2]))
    """

    saved_as = "F2OCLStrategy"
    pool: Any
    keys: Any

    def __init__(
        self,
        backbone: str | nn.Module = "vit_base_patch16_224.augreg_in21k",
        *,
        weights: str | Path | None = None,
        image_size: int | None = None,
        config: F2OCLConfig | None = None,
        device: str | torch.device | None = None,
        **options: Any,
    ) -> None:
        config = F2OCLConfig(**options) if config is None else replace(config, **options)
        encoder = load_backbone(
            backbone,
            weights,
            image_size,
            readout=config.readout,
            prompt_position=config.prompt_position,
            normalise=config.normalise,
            inputs=config.inputs,
            precision=config.precision,
            capture=config.capture,
            compile=config.compile,
            device=device,
        )
        dim = encoder.embed_dim
        super().__init__(encoder, make_head(config, feature_count(config.head_features, encoder), config.seed))
        self.config = config
        self.z_means = None if config.head_features == "z" else ClassMeans(dim)
        if config.head == "ncm" and config.metric == "cosine":
            self.temperature = config.temperature
        self.shared = config.prompt_assignment == "shared"
        make_prompts = OnePrompt if self.shared else PromptPool
        drift = dim + feature_count(config.head_features, encoder) if config.compensate_drift else 0
        self.pool = make_prompts(config.prompt_length, dim, config.prompt_init, config.seed, drift)
        mean_keys = config.key_update == "mean"
        self.keys = MeanKeys(dim) if mean_keys else GradientKeys(dim, config.key_lr, config.seed)
        self.optimizer = RowAdam(
            [self.pool.prompts], config.lr, config.betas, lr_decay=config.lr_decay, every_row=self.shared
        )
        self.to(device or next(encoder.parameters()).device)

    @classmethod
    def best(cls, backbone: str | nn.Module = "vit_base_patch16_224.augreg_in21k", **options: Any) -> "F2OCLModel":
        """The recommended settings, see :meth:`avalanche_f2ocl.F2OCLStrategy.best`; ``options`` win over them."""
        return cls(backbone, **{**PRESETS["best"], **options})

    @property
    def options(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self.config)))

    @classmethod
    def from_options(cls, options: Mapping[str, Any], **backbone: Any) -> "F2OCLModel":
        own = {field.name: options[field.name] for field in fields(F2OCLConfig) if field.name in options}
        return cls(config=F2OCLConfig(**own), **backbone)

    def add_classes(self, ids: Tensor) -> None:
        """A triplet of id, key and prompt, and a head row, for each of ``ids (N,)``."""
        super().add_classes(ids)
        if self.z_means is not None:
            self.z_means.add_rows(len(ids))
        self.pool.add_classes(ids)
        self.keys.add_classes(ids)

    @property
    def prototypes(self) -> ClassMeans:
        return self.head if self.z_means is None else self.z_means

    def undo(self, optimizer: torch.optim.Optimizer | None) -> Undo:
        undo = super().undo(optimizer)
        if self.config.compensate_drift and self.shared:
            undo.save_attributes(self.pool, "drift")
        return undo

    def begin_batch(self, images: Tensor, labels: Tensor) -> OnlineBatch:
        batch = super().begin_batch(images, labels)
        with self.backbone.replay():
            batch.q, batch.q_layers = self._query(images, batch.tokens)
        return batch

    def learn_batch(self, batch: OnlineBatch) -> None:
        """Prompts by ``passes`` steps on the contrastive loss, then keys, then prototypes."""
        for _ in range(self.config.passes):
            self.optimizer.zero_grad()
            self.contrastive_loss(batch).backward()
            self.optimizer.step()
        self.update_keys(batch)
        self.update_prototypes(batch)

    def contrastive_loss(self, batch: OnlineBatch) -> Tensor:
        """The loss of one pass (Eqs. 3-7), scalar; its gradient flows to the mini-batch's prompts alone."""
        prompts, drift = self._batch_prompts(batch, trainable=True), None
        with self.backbone.replay():
            if self.config.compensate_drift:
                z, layers = self._encode(batch.tokens, prompts)
            else:
                z = self.backbone.encode_tokens(batch.tokens, prompts)
        if self.config.compensate_drift:
            if batch.before is None:
                batch.before = self._measured(z.detach(), self._features(z.detach(), layers, batch))
            drift = self.pool.drift[self._elected(batch)][:, : z.shape[1]]
        if batch.initial is None:
            batch.initial = z.detach()[batch.first]
        counts = self.prototypes.counts[batch.rows]
        means = self.prototypes.means(batch.rows)
        if drift is not None:
            means = means + drift
        prototypes = torch.where(counts.unsqueeze(1) == 0, batch.initial, means)
        temperature, exclude_self = self.config.temperature, self.config.exclude_self
        if self.config.negatives == "batch":
            # Only the mini-batch's classes matter: a table of B rows, whatever the number of classes.
            return contrastive_prompt_loss(
                z, batch.first, prototypes, counts, temperature, exclude_self=exclude_self
            )
        table = self.prototypes.means()
        if drift is not None:
            table += drift
        table[batch.rows] = prototypes
        return contrastive_prompt_loss(
            z, batch.rows, table, self.prototypes.used("counts"), temperature, "all", exclude_self
        )

    @torch.no_grad()
    def update_keys(self, batch: OnlineBatch) -> None:
        """Moves the keys of the mini-batch's classes (Eq. 9); before the prototypes, whose counts weigh it."""
        previous = self.head.counts[batch.class_rows]
        self.keys.update(batch.q, batch.rows, batch.class_rows, batch.local, previous)

    @torch.no_grad()
    def update_prototypes(self, batch: OnlineBatch) -> None:
        """Takes the embeddings under the updated prompts into prototypes (Eq. 8) and head; ends the mini-batch."""
        z, features = self.training_features(batch)
        if self.z_means is not None:
            self.z_means.update(z, batch.rows)
        self.head.update(features, batch.rows)
        self.batches += 1

    @torch.no_grad()
    def training_features(self, batch: OnlineBatch) -> tuple[Tensor, Tensor]:
        """A training mini-batch under its prompts as they are now: z ``(B, D)``, and what the head sees ``(B, F)``."""
        with self.backbone.replay():
            z, layers = self._encode(batch.tokens, self._batch_prompts(batch, trainable=False))
        features = self._features(z, layers, batch)
        if not self.config.compensate_drift:
            return z, features
        rows = self._elected(batch)
        if batch.before is not None:
            self.pool.add_drift(rows, self._measured(z, features) - batch.before)
            batch.before = None
        drift = self.pool.drift[rows]
        return z - drift[:, : z.shape[1]], features - drift[:, z.shape[1] :]

    def _features(self, z: Tensor, layers: Tensor | None, batch: OnlineBatch) -> Tensor:
        layers = None if layers is None else layers.detach()
        return head_features(self.config.head_features, z, batch.q, layers, batch.q_layers)

    @staticmethod
    def _measured(z: Tensor, features: Tensor) -> Tensor:
        """What drifts, on the mean over a mini-batch, ``(D + F,)``."""
        return torch.cat([z, features], dim=1).mean(0)

    def batch_logits(self, batch: OnlineBatch) -> Tensor:
        """Similarity of q to the keys before the update, ``(B, C)``."""
        return key_scores(batch.q, self.keys.vectors(), self.head.used("counts"))

    def _encode(self, tokens: Tensor, prompts: Tensor) -> tuple[Tensor, Tensor | None]:
        """Embeddings under prompts, and the layers where the head wants them."""
        if self.config.head_features in ("layers", "ensemble"):
            return self.backbone.encode_layers(tokens, prompts, LAST_BLOCKS)
        return self.backbone.encode_tokens(tokens, prompts), None

    @torch.no_grad()
    def _query(self, images: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor | None]:
        """Embeddings without prompts, and the layers where the head wants them."""
        if self.config.head_features == "ensemble":
            return self.backbone.encode_layers(tokens, last=LAST_BLOCKS)
        return self.backbone.query(images, tokens), None

    def _batch_prompts(self, batch: OnlineBatch, trainable: bool) -> Tensor:
        if self.shared:
            return self.pool.prompts
        if self.config.prompt_assignment == "label":
            rows, index = batch.class_rows, batch.local
        else:
            rows, index = self._elected(batch), None
        prompts = self.pool.gather(rows) if trainable else self.pool.prompts[rows]
        return prompts if index is None else prompts[index]

    def _elected(self, batch: OnlineBatch) -> Tensor:
        """Row of the prompt that a mini-batch is encoded under, ``(1,)`` int64."""
        if self.shared:
            return batch.rows.new_zeros(1)
        if batch.elected is None:
            draw = generator(self.config.seed, "election", self.batches)
            rows = elect(batch.host_rows, len(self.classes), self.config.prompt_election, draw)
            batch.elected = rows.to(self.device, non_blocking=True)
        return batch.elected

    @torch.no_grad()
    def predict_batch(self, images: Tensor) -> Prediction:
        """Retrieves each image's prompts by its nearest keys (Eq. 10) and scores it under them (Eq. 11)."""
        tokens = self.backbone.tokens(images)
        if self.shared:
            rows = tokens.new_zeros(1, 1, dtype=torch.int64)
            needs_q = self.config.head_features not in ("z", "layers")
            unprompted = self._query(images, tokens) if needs_q else None
            return Prediction(self.logits_under(tokens, rows, unprompted), tokens, unprompted)
        unprompted = q, _ = self._query(images, tokens)
        scores = key_scores(q, self.keys.vectors(), self.head.used("counts"))
        key_rows = scores.topk(min(self.config.keys, scores.shape[1]), dim=1).indices
        return Prediction(self.logits_under(tokens, key_rows, unprompted), tokens, unprompted, key_rows)

    @torch.no_grad()
    def logits_under(
        self, tokens: Tensor, rows: Tensor, unprompted: tuple[Tensor, Tensor | None] | None
    ) -> Tensor:
        """Scores under given prompts.

        Args:
            tokens: ``(B, T, D)``.
            rows: whose prompts, concatenated in this order, ``(B, K)`` int64; ``(1, K)`` for the same for all.
            unprompted: as in :class:`avalanche_f2ocl.models.base.Prediction`; None where the head does not see q.

        Returns:
            ``(B, C)``.
        """
        (q, q_layers), kind = unprompted or (None, None), self.config.head_features
        if kind == "q":
            return self.head.logits(q)
        z, z_layers = self._encode(tokens, self.pool.prompts[rows].flatten(1, 2))
        features = head_features(kind, z, q, z_layers, q_layers)
        if self.config.compensate_drift:
            features = features - self.pool.drift[rows].mean(1)[:, z.shape[1] :]
        return self.head.logits(features)
