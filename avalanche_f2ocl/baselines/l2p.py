"""L2P: a pool of prompts that all classes share, from which learned keys choose for each sample."""

from dataclasses import dataclass

from typing_extensions import Unpack

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.baselines.key_pool import KeyPool
from avalanche_f2ocl.baselines.keyed import KeyedConfig, KeyedKeywords, KeyedModel
from avalanche_f2ocl.baselines.prompted import Prompted
from avalanche_f2ocl.models.batch import ImageView
from avalanche_f2ocl.options import PromptPosition, Readout
from avalanche_f2ocl.strategies.base import BaseStrategy


@dataclass(frozen=True)
class L2PConfig(KeyedConfig):
    """Options of L2P, checked at construction.

    Args:
        pool_size: number M of prompts in the pool.
        prompt_length: number of tokens in a prompt.
        top_k: number of prompts for each sample.
        pull: weight of the key loss.
        classifier: ``"linear"``, or ``"ncm"`` (L2P-NCM of the F2OCL paper, which does not say how the prompts
            are trained; here the linear head trains them).
        readout: which outputs give the embedding; by default the mean over the prompts' outputs.
        prompt_position: ``"none"``, or ``"cls"`` to add the class token's position embedding to prompts, as the
            published code does.
        lr: Adam's step size; the default comes from a sweep, see benchmarks/README.md.
        mask_logits, head_init, prompt_init, passes, augment, normalise, inputs, fit, precision, seed: see
            :class:`avalanche_f2ocl.baselines.keyed.KeyedConfig`.

    Raises:
        TypeError, ValueError: an option is not allowed.

    Example:
        >>> L2PConfig(top_k=3).pool_size
        10
    """

    pool_size: int = 10
    prompt_length: int = 5
    top_k: int = 5
    pull: float = 0.5
    readout: Readout = "prompt"
    prompt_position: PromptPosition = "none"
    lr: float = 0.003

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pool_size", "prompt_length", "top_k"):
            check_positive_int(name, getattr(self, name))
        if self.top_k > self.pool_size:
            raise ValueError(f"top_k={self.top_k}: the pool has pool_size={self.pool_size} prompts, so at most that")


class L2PKeywords(KeyedKeywords, total=False):
    """Keywords of :class:`L2P`."""

    config: L2PConfig | None
    pool_size: int
    prompt_length: int
    top_k: int
    prompt_position: PromptPosition


class L2PModel(KeyedModel):
    """Inserts the ``top_k`` nearest prompts of the pool, concatenated, among the tokens.

    Args:
        backbone, weights, image_size, device, config: see :class:`avalanche_f2ocl.FrozenModel`.
        **options: options of :class:`L2PConfig`.

    Example:
        >>> L2PModel("micro_vit", lr=0.001).prompts.prompts.shape
        torch.Size([10, 5, 128])
    """

    config_type = L2PConfig
    config: L2PConfig
    prompts: KeyPool

    def make_prompts(self) -> KeyPool:
        config, dim = self.config, self.backbone.embed_dim
        return KeyPool(config.pool_size, (config.prompt_length, dim), dim, config.prompt_init, config.seed)

    def embed(self, view: ImageView) -> Prompted:
        rows, similarity = self.prompts.nearest(view.q, self.config.top_k)
        chosen = self.prompts.prompts[rows].flatten(1, 2)
        return Prompted(self.backbone.encode_tokens(view.tokens, chosen), similarity, rows)


class L2P(BaseStrategy):
    """Learning to Prompt, task-free and in one pass.

    Source: Wang et al., Learning to Prompt for Continual Learning, 2022. Pool, top-k, lengths, key loss, Adam and
    the readout (mean over the prompts' outputs) are the paper's. Some parts are left out because they need task
    boundaries: class masks by task, the penalty on prompts that earlier tasks used, and a new optimiser for each task.
    Votes over a test batch, which would make a prediction depend on other images, and clipping of gradients are left
    out too.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's (frozen in place).
        weights: local checkpoint for a named backbone; by default timm downloads the weights.
        image_size: side of the images in pixels; by default the backbone's own.
        device: by default CUDA if there is a CUDA device, else the CPU.
        config: all options of :class:`L2PConfig` at once.
        **options: single options, which override ``config``, and those of the training loop, see
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`.

    Raises:
        TypeError, ValueError: an option is not allowed.

    Example:
        >>> L2P(backbone="micro_vit", mask_logits="batch", evaluator=None).model.config.top_k
        5
    """

    model_type = L2PModel
    model: L2PModel

    def __init__(self, **options: Unpack[L2PKeywords]) -> None:
        super().__init__(**options)
