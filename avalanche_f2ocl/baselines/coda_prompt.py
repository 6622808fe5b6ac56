"""CODA-Prompt: prefixes that are weighted sums of components, weighted by attention to the image."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from typing_extensions import Unpack

from avalanche_f2ocl.arguments import check_not_negative, check_positive_int
from avalanche_f2ocl.baselines.linear import MaskLogits
from avalanche_f2ocl.baselines.prefix import FIRST_BLOCKS, check_blocks, prefix_tuning
from avalanche_f2ocl.baselines.prompted import Prompted, PromptedConfig, PromptedKeywords, PromptedModel
from avalanche_f2ocl.models.batch import ImageView
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.strategies.base import BaseStrategy


@dataclass(frozen=True)
class CODAPromptConfig(PromptedConfig):
    """Options of CODA-Prompt, checked at construction; the defaults are the published ones.

    Args:
        pool_size: number M of components of each block's prefix.
        length: number of keys (and of values) put into each of the first five blocks.
        ortho: weight of the orthogonality penalty.
        lr: Adam's step size.
        mask_logits, head_init, passes, augment, readout, normalise, inputs, fit, precision, seed: see
            :class:`avalanche_f2ocl.baselines.prompted.PromptedConfig`.

    Raises:
        TypeError, ValueError: an option is not allowed.

    Example:
        >>> CODAPromptConfig(pool_size=20).length
        4
    """

    pool_size: int = 100
    length: int = 4
    ortho: float = 0.1
    lr: float = 0.001
    mask_logits: MaskLogits = "batch"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pool_size", "length"):
            check_positive_int(name, getattr(self, name))
        check_not_negative("ortho", self.ortho)


class CODAPromptKeywords(PromptedKeywords, total=False):
    """Keywords of :class:`CODAPrompt`."""

    config: CODAPromptConfig | None
    pool_size: int
    length: int
    ortho: float


class Components(nn.Module):
    """Components of prefixes, each with an attention vector for an image's q and a key to compare the result with.

    All three start orthonormal within each block, as far as the number of dimensions allows.

    Args:
        dim: length D of a token.
        pool_size, length, seed: see :class:`CODAPromptConfig`.

    Attributes:
        prefixes: parameter ``(5 blocks, M, 2, length, D)``: keys, then values.
        keys, attention: parameters ``(5 blocks, M, D)``.

    Example:
        >>> Components(dim=8, pool_size=4, length=1, seed=0)(torch.ones(2, 8)).shape
        torch.Size([2, 5, 2, 1, 8])
    """

    def __init__(self, dim: int, pool_size: int, length: int, seed: int) -> None:
        super().__init__()
        size, draw = (len(FIRST_BLOCKS), pool_size), generator(seed, "components")
        self.prefixes = nn.Parameter(orthonormal(*size, 2 * length * dim, draw).view(*size, 2, length, dim))
        self.keys = nn.Parameter(orthonormal(*size, dim, draw))
        self.attention = nn.Parameter(orthonormal(*size, dim, draw))

    def forward(self, q: Tensor) -> Tensor:
        """Prefixes ``(B, 5 blocks, 2, length, D)`` of images with q ``(B, D)``."""
        return torch.einsum("bnm,nm...->bn...", attended_similarity(q, self.attention, self.keys), self.prefixes)

    def penalty(self) -> Tensor:
        """How far components are from being orthonormal, summed over blocks and kinds, scalar."""
        parts = self.prefixes.flatten(2), self.keys, self.attention
        return torch.stack([orthogonality_penalty(part) for part in parts]).sum()


def orthonormal(blocks: int, rows: int, dim: int, draw: torch.Generator) -> Tensor:
    """Random rows ``(blocks, rows, dim)``, orthonormal within each block; if ``rows > dim``, the columns are."""
    wide = torch.randn(blocks, max(rows, dim), min(rows, dim), generator=draw, dtype=torch.float32)
    columns = torch.linalg.qr(wide).Q
    return (columns if rows > dim else columns.transpose(1, 2)).contiguous()


def attended_similarity(q: Tensor, attention: Tensor, keys: Tensor) -> Tensor:
    """Cosine similarity between q, multiplied by each component's attention, and the component's key.

    Args:
        q: ``(B, D)``.
        attention, keys: ``(N, M, D)``.

    Returns:
        ``(B, N, M)``.

    Source: Smith et al., CODA-Prompt, 2023, section 4.2.
    """
    inner = torch.einsum("bd,nmd->bnm", q, attention * keys)
    square = torch.einsum("bd,nmd->bnm", q.square(), attention.square())
    return inner / (square.sqrt() * keys.norm(dim=2)).clamp_min(1e-12)


def orthogonality_penalty(rows: Tensor) -> Tensor:
    """Mean square of B B^T - I, summed over blocks: ``(N, M, F)`` to a scalar.

    Source: Smith et al., CODA-Prompt, 2023, section 4.3, with the published code's mean over entries.
    """
    gram = rows @ rows.transpose(1, 2)
    return (gram - torch.eye(rows.shape[1], device=rows.device)).square().mean(dim=(1, 2)).sum()


class CODAPromptModel(PromptedModel):
    """Prefix-tunes the first five blocks by weighted sums of components.

    Args:
        backbone: a ViT with at least five blocks, given as for :class:`avalanche_f2ocl.FrozenModel`.
        weights, image_size, device, config: see :class:`avalanche_f2ocl.FrozenModel`.
        **options: options of :class:`CODAPromptConfig`.

    Raises:
        ValueError: the backbone has fewer blocks.

    Example:
        >>> CODAPromptModel("micro_vit").prompts.prefixes.shape
        torch.Size([5, 100, 2, 4, 128])
    """

    config_type = CODAPromptConfig
    config: CODAPromptConfig
    prompts: Components

    def make_prompts(self) -> Components:
        config = self.config
        check_blocks(self.backbone.vit, "CODAPrompt", last=FIRST_BLOCKS[-1])
        return Components(self.backbone.embed_dim, config.pool_size, config.length, config.seed)

    def embed(self, view: ImageView) -> Prompted:
        prefixes = dict(zip(FIRST_BLOCKS, self.prompts(view.q).unbind(1), strict=True))
        with prefix_tuning(self.backbone.vit.blocks, prefixes):
            return Prompted(self.backbone.encode_tokens(view.tokens))

    def penalty(self, prompted: Prompted) -> Tensor:
        """The orthogonality penalty, scalar."""
        return self.config.ortho * self.prompts.penalty()


class CODAPrompt(BaseStrategy):
    """CODA-Prompt, task-free and in one pass.

    Source: Smith et al., CODA-Prompt: COntinual Decomposed Attention-based Prompting for Rehearsal-Free Continual
    Learning, 2023. Components, attention, penalty, blocks and lengths are the paper's. Some parts are left out because
    they need task boundaries: adding components for each task while earlier ones are frozen (here all exist and are
    trained from the start), class masks by task (here they are by mini-batch, ``mask_logits``), and the decay of the
    step size over a task.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's, with at least five blocks (frozen in place).
        weights: local checkpoint for a named backbone; by default timm downloads the weights.
        image_size: side of the images in pixels; by default the backbone's own.
        device: by default CUDA if there is a CUDA device, else the CPU.
        config: all options of :class:`CODAPromptConfig` at once.
        **options: single options, which override ``config``, and those of the training loop, see
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`.

    Raises:
        TypeError, ValueError: an option is not allowed, or the backbone has fewer than five blocks.

    Example:
        >>> CODAPrompt(backbone="micro_vit", evaluator=None).model.config.pool_size
        100
    """

    model_type = CODAPromptModel
    model: CODAPromptModel

    def __init__(self, **options: Unpack[CODAPromptKeywords]) -> None:
        super().__init__(**options)
