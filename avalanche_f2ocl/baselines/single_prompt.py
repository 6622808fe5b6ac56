"""SinglePrompt: one prompt for all images under a cosine head."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import Unpack

from avalanche_f2ocl.arguments import check_positive, check_positive_int
from avalanche_f2ocl.baselines.augmentation import Augment
from avalanche_f2ocl.baselines.linear import HeadInit, LinearHead, MaskLogits
from avalanche_f2ocl.baselines.prefix import FIRST_BLOCKS, check_blocks, prefix_tuning
from avalanche_f2ocl.baselines.prompted import Prompted, PromptedConfig, PromptedKeywords, PromptedModel
from avalanche_f2ocl.models.batch import ImageView
from avalanche_f2ocl.options import PromptInit, PromptPosition
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.prompts import initial_prompt
from avalanche_f2ocl.strategies.base import BaseStrategy


@dataclass(frozen=True)
class SinglePromptConfig(PromptedConfig):
    """Options of SinglePrompt, checked at construction; the defaults are the published ones.

    Args:
        length: number of keys (and of values) put into each of the first five blocks.
        scale: scale of the cosine head, one over the temperature.
        prompt_init: initial values of the prompt, see :class:`avalanche_f2ocl.config.F2OCLConfig`.
        prompt_position: ``"cls"``, the class token's position embedding is added to keys and values; or ``"none"``.
        lr: Adam's step size.
        mask_logits, head_init, passes, augment, readout, normalise, inputs, fit, precision, seed: see
            :class:`avalanche_f2ocl.baselines.prompted.PromptedConfig`.

    Raises:
        TypeError, ValueError: an option is not allowed.

    Example:
        >>> SinglePromptConfig(augment="none").passes
        3
    """

    length: int = 20
    scale: float = 10.0
    prompt_init: PromptInit = "uniform"
    prompt_position: PromptPosition = "cls"
    lr: float = 0.005
    mask_logits: MaskLogits = "batch"
    head_init: HeadInit = "uniform"
    passes: int = 3
    augment: Augment = "autoaugment"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive_int("length", self.length)
        check_positive("scale", self.scale)
        if self.head_init == "zeros":
            raise ValueError("head_init='zeros': a cosine head has no direction then; allowed are 'normal', 'uniform'")


class SinglePromptKeywords(PromptedKeywords, total=False):
    """Keywords of :class:`SinglePrompt`."""

    config: SinglePromptConfig | None
    length: int
    scale: float
    prompt_init: PromptInit
    prompt_position: PromptPosition


class CosineHead(LinearHead):
    """Scaled cosine similarity to a learned vector for each class, which starts at random; there is no bias.

    Args:
        dim: length D of the embeddings.
        scale: the logit of an embedding that points in the same direction as the class's vector.
        init, seed: those of :class:`avalanche_f2ocl.baselines.linear.LinearHead`.

    Example:
        >>> import torch
        >>> head = CosineHead(2, scale=5.0)
        >>> head.add_classes(torch.tensor([7]))
        >>> bool(head(torch.ones(1, 2)).abs() <= 5)
        True
    """

    def __init__(self, dim: int, scale: float = 10.0, init: HeadInit = "uniform", seed: int = 0) -> None:
        super().__init__(dim, init, seed)
        self.scale = scale

    def forward(self, z: Tensor) -> Tensor:
        """Unmasked logits: ``(B, D)`` to ``(B, C)``."""
        return self._cosine(z, self.used("weight"))

    def training_logits(self, z: Tensor, rows: Tensor) -> Tensor:
        return self._cosine(z, self.trainable("weight", rows))

    def _cosine(self, z: Tensor, weight: Tensor) -> Tensor:
        return self.scale * F.normalize(z, dim=1) @ F.normalize(weight, dim=1).T


class Prefix(nn.Module):
    """The keys and values that all images share.

    Attributes:
        prefix: parameter ``(5 blocks, 2, length, D)``: keys, then values.
    """

    def __init__(self, prefix: Tensor) -> None:
        super().__init__()
        self.prefix = nn.Parameter(prefix)


class SinglePromptModel(PromptedModel):
    """Frozen backbone, one prefix in its first five blocks, cosine head.

    Args:
        backbone: a ViT with at least five blocks, given as for :class:`avalanche_f2ocl.FrozenModel`.
        weights, image_size, device, config: see :class:`avalanche_f2ocl.FrozenModel`.
        **options: options of :class:`SinglePromptConfig`.

    Raises:
        ValueError: the backbone has fewer blocks.

    Example:
        >>> SinglePromptModel("micro_vit").prompts.prefix.shape
        torch.Size([5, 2, 20, 128])
    """

    config_type = SinglePromptConfig
    config: SinglePromptConfig
    prompts: Prefix

    def make_head(self) -> CosineHead:
        config = self.config
        return CosineHead(self.backbone.embed_dim, config.scale, config.head_init, config.seed)

    def make_prompts(self) -> Prefix:
        check_blocks(self.backbone.vit, "SinglePrompt", last=FIRST_BLOCKS[-1])
        config, shape = self.config, (len(FIRST_BLOCKS), 2, self.config.length, self.backbone.embed_dim)
        return Prefix(initial_prompt(config.prompt_init, shape, generator(config.seed, "prefix")))

    def embed(self, view: ImageView) -> Prompted:
        vit: Any = self.backbone.vit
        shift = vit.pos_embed[:, :1] if self.config.prompt_position == "cls" else 0
        prefixes = dict(zip(FIRST_BLOCKS, (self.prompts.prefix + shift).unsqueeze(1), strict=True))
        with prefix_tuning(vit.blocks, prefixes):
            return Prompted(self.backbone.encode_tokens(view.tokens))


class SinglePrompt(BaseStrategy):
    """One prompt for every image, trained through a cosine head whose loss is masked to the mini-batch's classes.

    Source: Park et al., Is Prompt Selection Necessary for Task-Free Online Continual Learning?, 2026. The method needs
    no boundaries and is implemented completely. Adam updates a class's vector from the time the class appears, and the
    vector rests while the class is absent; in the published code the momentum goes on moving it.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's, with at least five blocks (frozen in place).
        weights: local checkpoint for a named backbone; by default timm downloads the weights.
        image_size: side of the images in pixels; by default the backbone's own.
        device: by default CUDA if there is a CUDA device, else the CPU.
        config: all options of :class:`SinglePromptConfig` at once.
        **options: single options, which override ``config``, and those of the training loop, see
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`.

    Raises:
        TypeError, ValueError: an option is not allowed, or the backbone has fewer than five blocks.

    Example:
        >>> SinglePrompt(backbone="micro_vit", evaluator=None).model.head.scale
        10.0
    """

    model_type = SinglePromptModel
    model: SinglePromptModel

    def __init__(self, **options: Unpack[SinglePromptKeywords]) -> None:
        super().__init__(**options)
