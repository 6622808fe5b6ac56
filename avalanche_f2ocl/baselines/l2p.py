"""L2P: a pool of prompts shared by all classes, chosen per sample by learned keys."""

from functools import partial

from torch import Tensor

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.key_pool import KeyPool
from avalanche_f2ocl.baselines.linear import LinearStrategy
from avalanche_f2ocl.baselines.prompted import Prompted, PromptedModel
from avalanche_f2ocl.config import check_choice


class L2PModel(PromptedModel):
    """Concatenates the ``top_k`` nearest prompts of the pool among the tokens.

    Args:
        backbone: the frozen encoder.
        lr: step size.
        mask_logits: ``"none"`` or ``"batch"``.
        pool_size, prompt_length, top_k, prompt_init, seed: as :class:`L2P`.
        **options: as :class:`avalanche_f2ocl.baselines.prompted.PromptedModel`.

    Example:
        >>> from avalanche_f2ocl.backbone.load import load_backbone
        >>> model = L2PModel(load_backbone("micro_vit", readout="prompt"), lr=0.001, pull=0.5)
        >>> model.prompts.prompts.shape
        torch.Size([10, 5, 128])
    """

    def __init__(
        self,
        backbone: PromptableViT,
        lr: float,
        mask_logits: str = "none",
        pool_size: int = 10,
        prompt_length: int = 5,
        top_k: int = 5,
        prompt_init: str = "uniform",
        seed: int = 0,
        **options,
    ) -> None:
        dim = backbone.embed_dim
        super().__init__(
            backbone, lr, mask_logits, KeyPool(pool_size, (prompt_length, dim), dim, prompt_init, seed), **options
        )
        self.top_k = top_k

    def embed(self, tokens: Tensor, q: Tensor) -> Prompted:
        rows, similarity = self.prompts.nearest(q, self.top_k)
        chosen = self.prompts.prompts[rows].flatten(1, 2)
        return Prompted(self.backbone.encode_tokens(tokens, chosen), similarity, rows)


class L2P(LinearStrategy):
    """Learning to Prompt, task-free and in one pass.

    Source: Wang et al., Learning to Prompt for Continual Learning, 2022. Pool, top-k, lengths, key loss, Adam and
    the readout (mean over the prompts' outputs) are the paper's. Left out, because a stream without boundaries has
    no place for it: class masks by task, the penalty on prompts that earlier tasks used, a new optimiser per task.
    Left out too: prompts voted over a test batch (a prediction depends on its image alone), augmentation (all
    methods here go without), and clipping of gradients. Prompts have no position embedding.

    Args:
        pool_size: prompts in the pool, M.
        prompt_length: tokens a prompt.
        top_k: prompts a sample.
        pull: weight of the key loss.
        classifier: ``"linear"``, or ``"ncm"`` (L2P-NCM of the F2OCL paper, which does not say how its prompts
            are trained; here by the linear head).
        prompt_init: as :class:`avalanche_f2ocl.config.F2OCLConfig`.
        lr: Adam's step size; the default comes from a sweep, see benchmarks/README.md.
        readout, seed: as :class:`avalanche_f2ocl.baselines.linear.LinearStrategy`.
        **options: likewise.

    Raises:
        TypeError, ValueError: an option out of range, or as the base.

    Example:
        >>> L2P(backbone="micro_vit", mask_logits="batch", evaluator=None).model.top_k
        5
    """

    def __init__(
        self,
        *,
        pool_size: int = 10,
        prompt_length: int = 5,
        top_k: int = 5,
        pull: float = 0.5,
        classifier: str = "linear",
        prompt_init: str = "uniform",
        readout: str = "prompt",
        lr: float = 0.003,
        seed: int = 0,
        **options,
    ):
        for name, value in (("pool_size", pool_size), ("prompt_length", prompt_length), ("top_k", top_k)):
            check_positive_int(name, value)
        if top_k > pool_size:
            raise ValueError(f"top_k={top_k}: the pool has pool_size={pool_size} prompts, so at most that")
        check_choice("prompt_init", prompt_init)
        model_type = partial(
            L2PModel,
            pool_size=pool_size,
            prompt_length=prompt_length,
            top_k=top_k,
            prompt_init=prompt_init,
            seed=seed,
            pull=pull,
            classifier=classifier,
        )
        super().__init__(readout=readout, lr=lr, seed=seed, model_type=model_type, **options)
