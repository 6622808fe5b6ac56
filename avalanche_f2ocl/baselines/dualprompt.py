"""DualPrompt: prefixes for all samples in the first blocks, and prefixes chosen by key in the next blocks."""

from dataclasses import dataclass

from torch import Tensor, nn
from typing_extensions import Unpack

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.baselines.key_pool import KeyPool
from avalanche_f2ocl.baselines.keyed import KeyedConfig, KeyedKeywords, KeyedModel
from avalanche_f2ocl.baselines.prefix import check_blocks, prefix_tuning
from avalanche_f2ocl.baselines.prompted import Prompted
from avalanche_f2ocl.models.batch import ImageView
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.prompts import initial_prompt
from avalanche_f2ocl.strategies.base import BaseStrategy

G_BLOCKS, E_BLOCKS = (0, 1), (2, 3, 4)
"""Blocks with general and with expert prompts, counted from 0."""


@dataclass(frozen=True)
class DualPromptConfig(KeyedConfig):
    """Options of DualPrompt, checked at construction.

    Args:
        pool_size: number of E-prompts.
        g_length, e_length: numbers of keys (and of values) that the G-prompt and an E-prompt put into each of their
            blocks.
        pull: weight of the key loss.
        classifier: ``"linear"``, or ``"ncm"`` (DualPrompt-NCM of the F2OCL paper, which does not say how the
            prompts are trained; here the linear head trains them).
        lr: Adam's step size; the default comes from a sweep, see benchmarks/README.md.
        mask_logits, head_init, prompt_init, passes, augment, readout, normalise, inputs, fit, precision, seed: see
            :class:`avalanche_f2ocl.baselines.keyed.KeyedConfig`.

    Raises:
        TypeError, ValueError: an option is not allowed.

    Example:
        >>> DualPromptConfig(pool_size=5).e_length
        20
    """

    pool_size: int = 10
    g_length: int = 5
    e_length: int = 20
    lr: float = 0.001

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pool_size", "g_length", "e_length"):
            check_positive_int(name, getattr(self, name))


class DualPromptKeywords(KeyedKeywords, total=False):
    """Keywords of :class:`DualPrompt`."""

    config: DualPromptConfig | None
    pool_size: int
    g_length: int
    e_length: int


class DualPrompts(nn.Module):
    """One G-prompt and a pool of E-prompts.

    Args:
        dim: length D of a token.
        pool_size, g_length, e_length, init, seed: see :class:`DualPromptConfig`.

    Attributes:
        general: parameter ``(2 blocks, 2, g_length, D)``: keys, then values.
        expert: the pool; a prompt is ``(3 blocks, 2, e_length, D)``.
    """

    def __init__(self, dim: int, pool_size: int, g_length: int, e_length: int, init: str, seed: int) -> None:
        super().__init__()
        draw = generator(seed, "general-prompt")
        self.general = nn.Parameter(initial_prompt(init, (len(G_BLOCKS), 2, g_length, dim), draw))
        self.expert = KeyPool(pool_size, (len(E_BLOCKS), 2, e_length, dim), dim, init, seed)


class DualPromptModel(KeyedModel):
    """Prefix-tunes the backbone with the G-prompt and the E-prompt of the nearest key.

    Args:
        backbone: a ViT with at least five blocks, given as for :class:`avalanche_f2ocl.FrozenModel`.
        weights, image_size, device, config: see :class:`avalanche_f2ocl.FrozenModel`.
        **options: options of :class:`DualPromptConfig`.

    Raises:
        ValueError: the backbone has fewer blocks.

    Example:
        >>> model = DualPromptModel("micro_vit", lr=0.001)
        >>> model.prompts.general.shape, model.prompts.expert.prompts.shape
        (torch.Size([2, 2, 5, 128]), torch.Size([10, 3, 2, 20, 128]))
    """

    config_type = DualPromptConfig
    config: DualPromptConfig
    prompts: DualPrompts

    def make_prompts(self) -> DualPrompts:
        config = self.config
        check_blocks(self.backbone.vit, "DualPrompt", last=E_BLOCKS[-1])
        sizes = config.pool_size, config.g_length, config.e_length
        return DualPrompts(self.backbone.embed_dim, *sizes, config.prompt_init, config.seed)

    def embed(self, view: ImageView) -> Prompted:
        rows, similarity = self.prompts.expert.nearest(view.q, count=1)
        return Prompted(self.embed_under(view.tokens, rows.squeeze(1)), similarity, rows)

    def embed_under(self, tokens: Tensor, rows: Tensor) -> Tensor:
        """Embeds tokens ``(B, T, D)`` under the G-prompt and E-prompts ``rows (B,)``: ``(B, D)``."""
        prefixes = {block: prefix.unsqueeze(0) for block, prefix in zip(G_BLOCKS, self.prompts.general, strict=True)}
        prefixes |= dict(zip(E_BLOCKS, self.prompts.expert.prompts[rows].unbind(1), strict=True))
        with prefix_tuning(self.backbone.vit.blocks, prefixes):
            return self.backbone.encode_tokens(tokens)


class DualPrompt(BaseStrategy):
    """DualPrompt, task-free and in one pass.

    Source: Wang et al., DualPrompt: Complementary Prompting for Rehearsal-free Continual Learning, 2022. Blocks,
    lengths, key loss and Adam are the paper's; a length counts the keys, and there are as many values, as in the
    published code. The published code trains the current task's E-prompt, one for each of ten tasks; here an E-prompt
    is chosen by key from a pool of ten, in training as in testing. Class masks by task are left out because they need
    task boundaries. Clipping of gradients is left out too.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's, with at least five blocks (frozen in place).
        weights: local checkpoint for a named backbone; by default timm downloads the weights.
        image_size: side of the images in pixels; by default the backbone's own.
        device: by default CUDA if there is a CUDA device, else the CPU.
        config: all options of :class:`DualPromptConfig` at once.
        **options: single options, which override ``config``, and those of the training loop, see
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`.

    Raises:
        TypeError, ValueError: an option is not allowed, or the backbone has fewer than five blocks.

    Example:
        >>> DualPrompt(backbone="micro_vit", mask_logits="batch", evaluator=None).model.prompts.expert.keys.shape
        torch.Size([10, 128])
    """

    model_type = DualPromptModel
    model: DualPromptModel

    def __init__(self, **options: Unpack[DualPromptKeywords]) -> None:
        super().__init__(**options)
