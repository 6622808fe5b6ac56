"""MVP: prompts chosen by key, a mask of logits for each prompt, and a loss for classes that are rare in the stream."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import Unpack

from avalanche_f2ocl.arguments import check_not_negative, check_positive, check_positive_int, check_share
from avalanche_f2ocl.baselines.augmentation import Augment
from avalanche_f2ocl.baselines.block_prompts import prompt_tuning
from avalanche_f2ocl.baselines.dualprompt import E_BLOCKS, G_BLOCKS
from avalanche_f2ocl.baselines.linear import HeadInit, LinearHead
from avalanche_f2ocl.baselines.mvp_losses import adaptive_scale, contrastive_key_loss, gradient_similarity
from avalanche_f2ocl.baselines.prefix import check_blocks
from avalanche_f2ocl.baselines.prompted import Prompted, PromptedConfig, PromptedKeywords, PromptedModel
from avalanche_f2ocl.models.batch import ImageView
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.class_means import mask_unseen
from avalanche_f2ocl.state.rows import Undoable
from avalanche_f2ocl.strategies.base import BaseStrategy


@dataclass(frozen=True)
class MVPConfig(PromptedConfig):
    """Options of MVP, checked at construction; the defaults are the published ones.

    Args:
        pool_size: number M of E-prompts.
        g_length, e_length: numbers of tokens that the G-prompt and an E-prompt put into each of their blocks.
        alpha: share of the loss that is weighted by how dissimilar a sample's gradient is to the mini-batch's.
        gamma: exponent of that weight.
        margin: least scale of the adaptive feature scaling.
        lr: Adam's step size.
        mask_logits, head_init, passes, augment, readout, normalise, inputs, fit, precision, seed: see
            :class:`avalanche_f2ocl.baselines.prompted.PromptedConfig`.

    Raises:
        TypeError, ValueError: an option is not allowed.

    Example:
        >>> MVPConfig(pool_size=5).gamma
        2.0
    """

    pool_size: int = 10
    g_length: int = 5
    e_length: int = 20
    alpha: float = 0.5
    gamma: float = 2.0
    margin: float = 0.5
    lr: float = 0.005
    passes: int = 3
    augment: Augment = "autoaugment"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pool_size", "g_length", "e_length"):
            check_positive_int(name, getattr(self, name))
        check_share("alpha", self.alpha)
        check_not_negative("gamma", self.gamma)
        check_positive("margin", self.margin)


class MVPKeywords(PromptedKeywords, total=False):
    """Keywords of :class:`MVP`."""

    config: MVPConfig | None
    pool_size: int
    g_length: int
    e_length: int
    alpha: float
    gamma: float
    margin: float


class CountedPrompts(Undoable):
    """One G-prompt and a pool of E-prompts, chosen by key; E-prompts that were chosen often count as farther away.

    Args:
        dim: length D of a token.
        pool_size, g_length, e_length, seed: see :class:`MVPConfig`.

    Attributes:
        general: parameter ``(2 blocks, g_length, D)``.
        expert: parameter ``(M, 3 blocks, e_length, D)``.
        keys: parameter ``(M, D)``.
        counts: how often each E-prompt was chosen in training, ``(M,)`` int64.
    """

    counts: Tensor

    def __init__(self, dim: int, pool_size: int, g_length: int, e_length: int, seed: int) -> None:
        super().__init__()
        draw = generator(seed, "counted-prompts")
        shapes = (len(G_BLOCKS), g_length, dim), (pool_size, len(E_BLOCKS), e_length, dim), (pool_size, dim)
        self.general, self.expert, self.keys = (
            nn.Parameter(torch.randn(shape, generator=draw, dtype=torch.float32)) for shape in shapes
        )
        self.register_buffer("counts", torch.zeros(pool_size, dtype=torch.int64))

    def nearest(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """Row of the nearest E-prompt of each of ``q (B, D)``, ``(B,)`` int64, and the cosine similarity to its key."""
        similarity = F.normalize(q, dim=1) @ F.normalize(self.keys, dim=1).T
        rows = ((1 - similarity) * (self.counts + 1)).argmin(1)
        return rows, similarity.gather(1, rows.unsqueeze(1)).squeeze(1)

    def count(self, rows: Tensor) -> None:
        """Notes that E-prompts ``rows (B,)`` were chosen."""
        # A new tensor, so that undo can restore the old one.
        self.counts = self.counts.index_add(0, rows, torch.ones_like(rows))

    def undo_writes(self, rows: Tensor) -> Callable[[], None]:
        return partial(setattr, self, "counts", self.counts)


class MaskedHead(LinearHead):
    """A linear head whose logits are multiplied by a mask ``2 sigmoid(m)`` of the E-prompt; m is learned, from -1.

    Args:
        dim: length D of the embeddings.
        pool_size: number M of E-prompts.
        init, seed: those of :class:`avalanche_f2ocl.baselines.linear.LinearHead`.

    Attributes:
        mask: parameter ``(capacity, M)``.
    """

    mask: Tensor

    def __init__(self, dim: int, pool_size: int, init: HeadInit = "zeros", seed: int = 0) -> None:
        super().__init__(dim, init, seed)
        self.register_rows("mask", pool_size, trainable=True)

    @torch.no_grad()
    def add_classes(self, ids: Tensor) -> None:
        super().add_classes(ids)
        self.used("mask")[-len(ids) :] = -1


class MVPModel(PromptedModel):
    """Puts the G-prompt and the nearest E-prompt into blocks, and masks logits by the E-prompt's mask.

    Args:
        backbone: a ViT with at least five blocks, given as for :class:`avalanche_f2ocl.FrozenModel`.
        weights, image_size, device, config: see :class:`avalanche_f2ocl.FrozenModel`.
        **options: options of :class:`MVPConfig`.

    Raises:
        ValueError: the backbone has fewer blocks.

    Example:
        >>> MVPModel("micro_vit").prompts.expert.shape
        torch.Size([10, 3, 20, 128])
    """

    config_type = MVPConfig
    config: MVPConfig
    prompts: CountedPrompts
    head: MaskedHead

    def make_head(self) -> MaskedHead:
        config = self.config
        return MaskedHead(self.backbone.embed_dim, config.pool_size, config.head_init, config.seed)

    def make_prompts(self) -> CountedPrompts:
        config = self.config
        check_blocks(self.backbone.vit, "MVP", last=E_BLOCKS[-1])
        sizes = config.pool_size, config.g_length, config.e_length
        return CountedPrompts(self.backbone.embed_dim, *sizes, config.seed)

    def embed(self, view: ImageView) -> Prompted:
        blocks = self.backbone.vit.blocks
        with torch.no_grad():  # the class token before the last block, as in the published code
            q = self.backbone.encode_layers(view.tokens, blocks=[len(blocks) - 2])[1][:, 0, 0]
        rows, similarity = self.prompts.nearest(q)
        prompts = dict(zip(G_BLOCKS, self.prompts.general.unsqueeze(1), strict=True))
        prompts |= dict(zip(E_BLOCKS, self.prompts.expert[rows].unbind(1), strict=True))
        with prompt_tuning(blocks, prompts):
            return Prompted(self.backbone.encode_tokens(view.tokens), similarity.unsqueeze(1), rows.unsqueeze(1))

    def loss(self, batch) -> Tensor:
        """The weighted cross-entropy of scaled, masked logits, and the contrastive loss of the keys, scalar."""
        config, prompted = self.config, self.next_pass(batch)
        assert prompted.similarity is not None and prompted.rows is not None
        z, chosen = prompted.z, prompted.rows.squeeze(1)
        classes, targets = self.loss_classes(batch)
        weight, bias, mask = (self.head.trainable(name, classes) for name in ("weight", "bias", "mask"))
        gate = 2 * mask[:, chosen].T.sigmoid()
        with torch.no_grad():
            similar = gradient_similarity(z, F.linear(z, weight, bias) * gate, gate, targets)
            scale = adaptive_scale(z, weight[targets], config.margin)
        losses = F.cross_entropy(F.linear(z / scale, weight, bias) * gate, targets, reduction="none")
        weights = 1 - config.alpha + config.alpha * (1 - similar) ** config.gamma
        counts = self.prompts.counts
        self.prompts.count(chosen)
        return (weights * losses).mean() + contrastive_key_loss(prompted.similarity, chosen, self.prompts.keys, counts)

    @torch.no_grad()
    def score(self, prompted: Prompted) -> Tensor:
        assert prompted.rows is not None
        gate = 2 * self.head.used("mask")[:, prompted.rows.squeeze(1)].T.sigmoid()
        return mask_unseen(self.head(prompted.z) * gate, self.head.used("counts"))


class MVP(BaseStrategy):
    """Mask and Visual Prompt tuning; it needs no boundaries.

    Source: Moon et al., Online Class Incremental Learning on Stochastic Blurry Task Boundary via Mask and Visual Prompt
    Tuning, 2023, and its published code (the last revision that compiles). It has logit masks for each prompt, a
    contrastive loss of the keys, a focal loss by the similarity of gradients, and features scaled by how well a class's
    weight fits; here it has no memory of images. The published code averages the losses of a mini-batch before it
    weights them and, because shapes are broadcast, takes the contrastive loss over all pairs of samples; here each
    sample has its own weight and terms. The published code draws one augmentation for a mini-batch; here each image has
    its own. A class's row of the head starts at zero (``head_init``), and Adam updates it from then on.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's, with at least five blocks (frozen in place).
        weights: local checkpoint for a named backbone; by default timm downloads the weights.
        image_size: side of the images in pixels; by default the backbone's own.
        device: by default CUDA if there is a CUDA device, else the CPU.
        config: all options of :class:`MVPConfig` at once.
        **options: single options, which override ``config``, and those of the training loop, see
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`.

    Raises:
        TypeError, ValueError: an option is not allowed, or the backbone has fewer than five blocks.

    Example:
        >>> MVP(backbone="micro_vit", evaluator=None).model.prompts.counts.shape
        torch.Size([10])
    """

    model_type = MVPModel
    model: MVPModel

    def __init__(self, **options: Unpack[MVPKeywords]) -> None:
        super().__init__(**options)
