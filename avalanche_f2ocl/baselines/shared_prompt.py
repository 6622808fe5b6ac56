"""One prompt for all images under a cosine head."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import Unpack

from avalanche_f2ocl.arguments import check_positive, check_positive_int
from avalanche_f2ocl.baselines.linear import LinearConfig, LinearHead, LinearKeywords, LinearModel, MaskLogits
from avalanche_f2ocl.baselines.prefix import check_blocks, prefix_tuning
from avalanche_f2ocl.models.batch import TrainingBatch
from avalanche_f2ocl.models.predicting import Prediction
from avalanche_f2ocl.options import DEFAULT_BACKBONE, PromptInit
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.prompts import initial_prompt
from avalanche_f2ocl.state.row_adam import RowAdam
from avalanche_f2ocl.strategies.base import BaseStrategy

BLOCKS = (0, 1, 2, 3, 4)
"""Blocks with a prefix, counted from 0: those of DualPrompt's two kinds of prompts together."""


@dataclass(frozen=True)
class SharedPromptConfig(LinearConfig):
    """Options of one prompt under a cosine head, checked at construction.

    Args:
        length: keys (and as many values) put into each of the first five blocks.
        scale: of the cosine head.
        prompt_init: as :class:`avalanche_f2ocl.config.F2OCLConfig`.
        lr: Adam's step size; the default comes from a search, see benchmarks/README.md.
        mask_logits, readout, normalise, inputs, precision, seed: as
            :class:`avalanche_f2ocl.baselines.linear.LinearConfig`.

    Raises:
        TypeError, ValueError: an option out of range.
    """

    length: int = 20
    scale: float = 5.0
    prompt_init: PromptInit = "uniform"
    mask_logits: MaskLogits = "batch"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive_int("length", self.length)
        check_positive("scale", self.scale)


class SharedPromptKeywords(LinearKeywords, total=False):
    """Of :class:`SharedPrompt`."""

    config: SharedPromptConfig | None
    length: int
    scale: float
    prompt_init: PromptInit


class CosineHead(LinearHead):
    """Scaled cosine similarity to a learned vector per class, which starts at random, normal with
    deviation 0.02; there is no bias.

    Args:
        dim: length D of the embeddings.
        scale: the logit of an embedding that points the same way.
        seed: of the initial vectors.

    Example:
        >>> head = CosineHead(2)
        >>> head.add_classes(torch.tensor([7]))
        >>> bool(head(torch.ones(1, 2)).abs() <= 5)
        True
    """

    def __init__(self, dim: int, scale: float = 5.0, seed: int = 0) -> None:
        super().__init__(dim)
        self.scale, self.seed = scale, seed

    @torch.no_grad()
    def add_classes(self, ids: Tensor) -> None:
        """Adds a random vector for each of the class ids ``(N,)``, int64 on the CPU."""
        new, dim = self.add_rows(len(ids)), self.weight.shape[1]
        draws = [initial_prompt("normal", (dim,), generator(self.seed, "head", c)) for c in ids.tolist()]
        self.weight[new] = torch.stack(draws).to(self.weight.device, non_blocking=True)

    def forward(self, z: Tensor) -> Tensor:
        """``(B, D)`` to ``(B, C)``, unmasked."""
        return self._cosine(z, self.used("weight"))

    def training_logits(self, z: Tensor, rows: Tensor) -> Tensor:
        return self._cosine(z, self.trainable("weight", rows))

    def _cosine(self, z: Tensor, weight: Tensor) -> Tensor:
        return self.scale * F.normalize(z, dim=1) @ F.normalize(weight, dim=1).T


class SharedPromptModel(LinearModel):
    """Frozen backbone, one prefix in its first five blocks, cosine head; one Adam step per mini-batch.

    Args:
        backbone: of at least five blocks; as :class:`avalanche_f2ocl.FrozenModel`.
        weights, image_size, device, config: as there.
        **options: of :class:`SharedPromptConfig`.

    Attributes:
        prefix: parameter ``(5 blocks, 2, length, D)``: keys, then values.

    Raises:
        ValueError: the backbone has fewer blocks.

    Example:
        >>> SharedPromptModel("micro_vit", lr=0.001).prefix.shape
        torch.Size([5, 2, 20, 128])
    """

    config_type = SharedPromptConfig
    config: SharedPromptConfig
    head: CosineHead

    def __init__(self, backbone: str | nn.Module = DEFAULT_BACKBONE, **options: Any) -> None:
        super().__init__(backbone, **options)
        config, dim = self.config, self.backbone.embed_dim
        check_blocks(self.backbone.vit, "SharedPrompt", last=BLOCKS[-1])
        self.head = CosineHead(dim, config.scale, config.seed)
        shape = (len(BLOCKS), 2, config.length, dim)
        self.prefix = nn.Parameter(initial_prompt(config.prompt_init, shape, generator(config.seed, "shared-prompt")))
        groups = [{"params": [self.prefix], "every_row": True}, {"params": [self.head.weight]}]
        self.optimizer = RowAdam(groups, config.lr)
        self.to(self.backbone.device)

    def add_classes(self, ids: Tensor) -> None:
        self.classes.add(ids)
        self.head.add_classes(ids)

    def embed(self, tokens: Tensor) -> Tensor:
        """Tokens ``(B, T, D)`` to embeddings under the prefix, ``(B, D)``."""
        prefixes = {block: part.unsqueeze(0) for block, part in zip(BLOCKS, self.prefix, strict=True)}
        with prefix_tuning(self.backbone.vit.blocks, prefixes):
            return self.backbone.encode_tokens(tokens)

    def encode_batch(self, batch: TrainingBatch) -> Tensor:
        return self.embed(batch.tokens)

    @torch.no_grad()
    def predict_batch(self, images: Tensor) -> Prediction:
        tokens = self.backbone.tokens(images)
        return Prediction(self.head.logits(self.embed(tokens)), tokens)


class SharedPrompt(BaseStrategy):
    """One prompt for every image, trained through a cosine head whose loss is masked to the mini-batch's classes.

    After SinglePrompt, which argues that a single prompt does as well as a pool of them: a prompt in the first
    blocks, a cosine head, and logits of classes that are not in the mini-batch masked. Left out: augmentation.

    Args:
        backbone: of at least five blocks; as :class:`avalanche_f2ocl.F2OCLStrategy`.
        weights, image_size, device: as there.
        config: all options of :class:`SharedPromptConfig` at once.
        **options: single ones, over ``config``; and those of the loop, see
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`.

    Raises:
        TypeError, ValueError: an option out of range, a backbone of fewer than five blocks.

    Example:
        >>> SharedPrompt(backbone="micro_vit", evaluator=None).model.head.scale
        5.0
    """

    model_type = SharedPromptModel
    model: SharedPromptModel

    def __init__(self, **options: Unpack[SharedPromptKeywords]) -> None:
        super().__init__(**options)
