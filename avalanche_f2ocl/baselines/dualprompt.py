"""DualPrompt: prefixes for all samples in the first blocks, prefixes chosen by key in the next."""

from functools import partial

from torch import Tensor, nn

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.key_pool import KeyPool
from avalanche_f2ocl.baselines.linear import LinearStrategy
from avalanche_f2ocl.baselines.prefix import prefix_tuning
from avalanche_f2ocl.baselines.prompted import Prompted, PromptedModel
from avalanche_f2ocl.config import check_choice
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.prompts import initial_prompt

G_BLOCKS, E_BLOCKS = (0, 1), (2, 3, 4)
"""Blocks with general and with expert prompts, counted from 0."""


class DualPrompts(nn.Module):
    """One G-prompt and a pool of E-prompts.

    Args:
        dim: length D of a token.
        pool_size, g_length, e_length, init, seed: as :class:`DualPrompt`.

    Attributes:
        general: parameter ``(2 blocks, 2, g_length, D)``: keys, then values.
        expert: the pool; a prompt is ``(3 blocks, 2, e_length, D)``.
    """

    def __init__(self, dim: int, pool_size: int, g_length: int, e_length: int, init: str, seed: int) -> None:
        super().__init__()
        draw = generator(seed, "general-prompt")
        self.general = nn.Parameter(initial_prompt(init, (len(G_BLOCKS), 2, g_length, dim), draw))
        self.expert = KeyPool(pool_size, (len(E_BLOCKS), 2, e_length, dim), dim, init, seed)


class DualPromptModel(PromptedModel):
    """Prefix-tunes the backbone by the G-prompt and the E-prompt of the nearest key.

    Args:
        backbone: the frozen encoder, of at least five blocks.
        lr: step size.
        mask_logits: ``"none"`` or ``"batch"``.
        pool_size, g_length, e_length, prompt_init, seed: as :class:`DualPrompt`.
        **options: as :class:`avalanche_f2ocl.baselines.prompted.PromptedModel`.

    Raises:
        ValueError: the backbone has fewer blocks.

    Example:
        >>> from avalanche_f2ocl.backbone.load import load_backbone
        >>> model = DualPromptModel(load_backbone("micro_vit"), lr=0.001, pull=1.0)
        >>> model.prompts.general.shape, model.prompts.expert.prompts.shape
        (torch.Size([2, 2, 5, 128]), torch.Size([10, 3, 2, 20, 128]))
    """

    def __init__(
        self,
        backbone: PromptableViT,
        lr: float,
        mask_logits: str = "none",
        pool_size: int = 10,
        g_length: int = 5,
        e_length: int = 20,
        prompt_init: str = "uniform",
        seed: int = 0,
        **options,
    ) -> None:
        depth = len(backbone.vit.blocks)
        if depth <= E_BLOCKS[-1]:
            raise ValueError(f"backbone has {depth} blocks: DualPrompt needs at least {E_BLOCKS[-1] + 1}")
        prompts = DualPrompts(backbone.embed_dim, pool_size, g_length, e_length, prompt_init, seed)
        super().__init__(backbone, lr, mask_logits, prompts, **options)

    def embed(self, tokens: Tensor, q: Tensor) -> Prompted:
        rows, similarity = self.prompts.expert.nearest(q, count=1)
        chosen = self.prompts.expert.prompts[rows.squeeze(1)]
        prefixes = {block: prefix.unsqueeze(0) for block, prefix in zip(G_BLOCKS, self.prompts.general, strict=True)}
        prefixes |= dict(zip(E_BLOCKS, chosen.unbind(1), strict=True))
        with prefix_tuning(self.backbone.vit.blocks, prefixes):
            z = self.backbone.encode_tokens(tokens)
        return Prompted(z, similarity, rows)


class DualPrompt(LinearStrategy):
    """DualPrompt, task-free and in one pass.

    Source: Wang et al., DualPrompt: Complementary Prompting for Rehearsal-free Continual Learning, 2022. Blocks,
    lengths, key loss and Adam are the paper's; a length counts the keys and as many values, as in its published
    code. The E-prompt, there the current task's in training, is chosen by key in training as in testing, from a
    pool of ten (there one for each of ten tasks). Left out, because a stream without boundaries has no place for
    it: class masks by task. Left out too: augmentation and clipping of gradients.

    Args:
        pool_size: E-prompts.
        g_length, e_length: keys (and values) that the G-prompt and an E-prompt put into each of their blocks.
        pull: weight of the key loss.
        classifier: ``"linear"``, or ``"ncm"`` (DualPrompt-NCM of the F2OCL paper, which does not say how its
            prompts are trained; here by the linear head).
        prompt_init: as :class:`avalanche_f2ocl.config.F2OCLConfig`.
        lr: Adam's step size; the default comes from a sweep, see benchmarks/README.md.
        seed: as :class:`avalanche_f2ocl.baselines.linear.LinearStrategy`.
        **options: likewise.

    Raises:
        TypeError, ValueError: an option out of range, a backbone of fewer than five blocks, or as the base.

    Example:
        >>> DualPrompt(backbone="micro_vit", mask_logits="batch", evaluator=None).model.prompts.expert.keys.shape
        torch.Size([10, 128])
    """

    def __init__(
        self,
        *,
        pool_size: int = 10,
        g_length: int = 5,
        e_length: int = 20,
        pull: float = 1.0,
        classifier: str = "linear",
        prompt_init: str = "uniform",
        lr: float = 0.001,
        seed: int = 0,
        **options,
    ):
        for name, value in (("pool_size", pool_size), ("g_length", g_length), ("e_length", e_length)):
            check_positive_int(name, value)
        check_choice("prompt_init", prompt_init)
        model_type = partial(
            DualPromptModel,
            pool_size=pool_size,
            g_length=g_length,
            e_length=e_length,
            prompt_init=prompt_init,
            seed=seed,
            pull=pull,
            classifier=classifier,
        )
        super().__init__(lr=lr, seed=seed, model_type=model_type, **options)
