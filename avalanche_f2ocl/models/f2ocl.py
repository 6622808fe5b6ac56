"""F2OCL as a plain PyTorch module, which can be saved, exported and served."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from typing_extensions import Self, Unpack

from avalanche_f2ocl.config import PRESETS, F2OCLConfig
from avalanche_f2ocl.heads.calibration import Calibration
from avalanche_f2ocl.heads.either import EitherHead
from avalanche_f2ocl.heads.familiarity import Familiarity
from avalanche_f2ocl.heads.features import feature_plan, head_features
from avalanche_f2ocl.heads.head import SumHead
from avalanche_f2ocl.heads.make import make_head
from avalanche_f2ocl.keywords import F2OCLKeywords
from avalanche_f2ocl.losses import contrastive_prompt_loss
from avalanche_f2ocl.models.drift import DriftCompensation, NoCompensation
from avalanche_f2ocl.models.early import plan_pass
from avalanche_f2ocl.models.f2ocl_batch import F2OCLBatch
from avalanche_f2ocl.models.f2ocl_predicting import F2OCLPredictor, needs_q
from avalanche_f2ocl.models.max_drift import relative_move
from avalanche_f2ocl.models.prediction import Unprompted
from avalanche_f2ocl.options import DEFAULT_BACKBONE
from avalanche_f2ocl.signatures import option_defaults, spelled_out
from avalanche_f2ocl.state.class_means import ClassMeans
from avalanche_f2ocl.state.keys import GradientKeys, MeanKeys, key_scores
from avalanche_f2ocl.state.prompts import make_prompts
from avalanche_f2ocl.state.row_adam import RowAdam


class F2OCLModel(F2OCLPredictor):
    """Frozen backbone, class prompts, keys and a head on class sums (paper, Algorithm 1).

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's.
        weights: local checkpoint for a named backbone.
        image_size: side of the images in pixels; by default the backbone's own.
        device: device of the model; by default the backbone's, and the CPU for a named backbone.
        config: all options at once.
        **options: single options of :class:`avalanche_f2ocl.config.F2OCLConfig`, which override ``config``.

    Attributes:
        pool: the prompts.
        keys: the keys.
        prototypes: class means of the prompted embeddings; this is the head itself if the head sums these embeddings.
        optimizer: the optimiser of the prompts.

    Raises:
        TypeError, ValueError: an option is not allowed, see :class:`F2OCLConfig`, or the backbone cannot be used, see
            :func:`avalanche_f2ocl.backbone.load_vit`.
        OSError: the weights could not be loaded.

    Example:
        >>> model = F2OCLModel("micro_vit", prompt_length=5)
        >>> images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
        >>> model.learn(images, [7, -3, 7, -3])
        >>> model.class_ids.tolist(), model(images).shape
        ([-3, 7], torch.Size([4, 2]))
    """

    saved_as = "F2OCLStrategy"
    config_type = F2OCLConfig
    batch_type = F2OCLBatch

    def __init__(self, backbone: str | nn.Module = DEFAULT_BACKBONE, **options: Unpack[F2OCLKeywords]) -> None:
        super().__init__(backbone, **options)
        config, encoder = self.config, self.backbone
        dim, self.plan = encoder.embed_dim, feature_plan(config, encoder)
        self.prompted_pass, self.unprompted_pass = (
            plan_pass(encoder, layers) for layers in (self.plan.prompted, self.plan.unprompted)
        )
        self.head = make_head(config, self.plan.widths, config.seed)
        # Predictions do not see embeddings under the image's own label's prompt.
        self.calibration = Calibration(None if config.prompt_assignment == "label" else self.head)
        self.familiar = (needs_q(config), config.prompt_assignment == "shared" and config.head_features != "q")
        self.familiarity = Familiarity(dim, sum(self.familiar) + 1)
        self.z_means = None if config.head_features == "z" else ClassMeans(dim)
        if config.head == "ncm" and config.metric == "cosine":
            self.temperature = config.temperature
        kept: dict[str, tuple[int, ...]] = {"drift": (dim + sum(self.plan.widths),)} if config.compensate_drift else {}
        kept |= {} if config.max_drift is None else {"moved": ()}
        shape = config.prompt_length, dim
        self.pool = make_prompts(config.prompt_assignment, *shape, config.prompt_init, config.seed, kept)
        self.drift = DriftCompensation(self.pool, dim) if config.compensate_drift else NoCompensation()
        mean_keys = config.key_update == "mean"
        self.keys = MeanKeys(dim) if mean_keys else GradientKeys(dim, config.key_lr, config.seed)
        every_row = not self.pool.found_by_key
        prompts = [self.pool.prompts]
        self.optimizer = RowAdam(prompts, config.lr, config.betas, lr_decay=config.lr_decay, every_row=every_row)
        self.to(encoder.device)

    @classmethod
    def best(cls, backbone: str | nn.Module = DEFAULT_BACKBONE, **options: Unpack[F2OCLKeywords]) -> Self:
        """The recommended settings, see :meth:`avalanche_f2ocl.F2OCLStrategy.best`.

        Args:
            backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's.
            **options: options of the constructor; they override the recommended ones.

        Raises:
            TypeError, ValueError: an option is not allowed.
            OSError: the weights could not be loaded.

        Example:
            >>> F2OCLModel.best("micro_vit").config.head
            'ridge'
        """
        return cls(backbone, **{**PRESETS["best"], **options})

    @property
    def prototypes(self) -> SumHead | ClassMeans:
        return self.head if self.z_means is None else self.z_means

    @property
    def passes(self) -> int:
        return self.config.passes

    @property
    def updates(self) -> tuple[Callable[[F2OCLBatch], None], ...]:
        return self.update_keys, self.update_prototypes

    def add_classes(self, ids: Tensor) -> None:
        """Adds an id, a key, a prompt and a row of the head for each of ``ids (N,)``."""
        super().add_classes(ids)
        if self.z_means is not None:
            self.z_means.add_rows(len(ids))
        self.pool.add_classes(ids)
        self.keys.add_classes(ids)

    def encode_batch(self, batch: F2OCLBatch) -> Unprompted:
        return self._encode_unprompted(batch.images, batch.tokens, replay=True)

    def begin_batch(self, images: Tensor, labels: Tensor) -> F2OCLBatch:
        batch = super().begin_batch(images, labels)
        batch.zoom = self.config.zoom
        return batch

    def contrastive_loss(self, batch: F2OCLBatch) -> Tensor:
        """The loss of one pass (Eqs. 3-7), scalar; its gradient flows only to the mini-batch's prompts.

        It is zero and has no gradient once the prompts take no more steps, see ``max_drift``.
        """
        config, watches = self.config, self.drift.watches
        if config.max_drift is not None and self.pool.stand_still(self._prompt_rows(batch), config.max_drift):
            return torch.zeros((), device=self.device)
        prompts = self._of_samples(batch, self.pool.gather(self._prompt_rows(batch)))
        z, layers, _ = self._encode(batch.prompted_tokens, prompts, replay=True, with_layers=watches)
        if batch.start is None:
            batch.start = z.detach()
        if watches:
            self.drift.before_step(batch, z.detach(), self._features(z.detach(), layers, batch))
        if batch.initial is None:
            batch.initial = z.detach()[batch.first]
        counts = self.prototypes.counts[batch.rows]
        means = self.drift.moved(batch, self.prototypes.means(batch.rows))
        prototypes = torch.where(counts.unsqueeze(1) == 0, batch.initial, means)
        if config.negatives == "batch":
            # Only the mini-batch's classes matter, so the table has B rows, whatever the number of classes.
            return contrastive_prompt_loss(
                z, batch.first, prototypes, counts, config.temperature, exclude_self=config.exclude_self
            )
        table, counts = self.drift.moved(batch, self.prototypes.means()), self.prototypes.used("counts")
        table[batch.rows] = prototypes
        return contrastive_prompt_loss(z, batch.rows, table, counts, config.temperature, "all", config.exclude_self)

    loss = contrastive_loss

    @torch.no_grad()
    def update_keys(self, batch: F2OCLBatch) -> None:
        """Moves the keys of the mini-batch's classes (Eq. 9); it comes before the prototypes, whose counts it needs."""
        previous = self.head.counts[batch.class_rows]
        self.keys.update(batch.encoded.q, batch.rows, batch.class_rows, batch.local, previous)

    @torch.no_grad()
    def update_prototypes(self, batch: F2OCLBatch) -> None:
        """Adds the embeddings under the updated prompts to prototypes (Eq. 8) and head, and ends the mini-batch."""
        start = batch.start
        z, features, judged, early = self.training_features(batch)
        if self.z_means is not None:
            self.z_means.update(z, batch.rows)
        before = judged, self._embeddings(batch.encoded, z if start is None else start, early)
        self.take_in(batch, features, self._embeddings(batch.encoded, z, early), before)

    @torch.no_grad()
    def take_out(self, batch: F2OCLBatch) -> None:
        self.keys.remove(batch.encoded.q, batch.rows)
        batch.prompt_rows = batch.rows if self.pool.found_by_key else torch.zeros_like(batch.rows[:1])
        z, layers, early = self._encode(batch.prompted_tokens, self.pool.prompts[batch.prompt_rows])
        self.familiarity.remove(self._embeddings(batch.encoded, z, early), batch.rows)
        z, features = self.drift.after_steps(batch, z, self._features(z, layers, batch))
        if self.z_means is not None:
            self.z_means.remove(z, batch.rows)
        self.head.remove(features, batch.rows, batch.images)

    @torch.no_grad()
    def training_features(self, batch: F2OCLBatch) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Embeddings and features of a training mini-batch under its present prompts.

        Returns:
            z ``(B, D)``; the head's features ``(B, F)``; the features that the head is judged on, ``(B, F)``; and early
            patches ``(B, D)``, if familiarity needs them. The head is judged on features made from z before the
            prompts' steps, since these steps have seen the labels; but layers are those after the steps, since others
            would take another forward pass.
        """
        prompts = self._of_samples(batch, self.pool.prompts[self._prompt_rows(batch)])
        z, layers, early = self._encode(batch.prompted_tokens, prompts, replay=True)
        if self.config.max_drift is not None and batch.start is not None:
            self.pool.add("moved", self._prompt_rows(batch), relative_move(batch.start, z))
        judged = self._features(z if batch.start is None else batch.start, layers, batch)
        judged = self.drift.compensated(judged, self._prompt_rows(batch).unsqueeze(0))
        if isinstance(self.head, EitherHead):
            self.head.judge(judged, batch.rows)
        return *self.drift.after_steps(batch, z, self._features(z, layers, batch)), judged, early

    def batch_logits(self, batch: F2OCLBatch) -> Tensor:
        """Similarities of q to the keys before the update, ``(B, C)``."""
        return key_scores(batch.encoded.q, self.keys.vectors(), self.head.used("counts"))

    def _prompt_rows(self, batch: F2OCLBatch) -> Tensor:
        """Rows of the prompts that a training mini-batch is encoded under: an elected one, or those of its classes."""
        if batch.prompt_rows is None:
            if self.config.prompt_assignment == "label":
                batch.prompt_rows = batch.class_rows
            else:
                row = self.pool.elect(batch.host_rows, str(self.config.prompt_election), self.batches)
                batch.prompt_rows = row.to(batch.rows.device, non_blocking=True)
        return batch.prompt_rows

    def _of_samples(self, batch: F2OCLBatch, prompts: Tensor) -> Tensor:
        """Each sample's prompt among the mini-batch's prompts ``(P, L, D)``, or the one for all samples."""
        return prompts[batch.local] if self.config.prompt_assignment == "label" else prompts

    def _features(self, z: Tensor, layers: Tensor | None, batch: F2OCLBatch) -> Tensor:
        layers = None if layers is None else layers.detach()
        return head_features(self.config.head_features, z, batch.encoded.q, layers, batch.encoded.layers)


F2OCLModel.best.__func__.__signature__ = spelled_out(  # type: ignore[attr-defined]
    F2OCLModel.best.__func__, option_defaults(F2OCLModel) | PRESETS["best"]  # type: ignore[attr-defined]
)
