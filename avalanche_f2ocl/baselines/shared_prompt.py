"""One prompt for all images under a cosine head."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from avalanche_f2ocl.arguments import check_positive, check_positive_int
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.linear import LinearHead, LinearModel, LinearStrategy
from avalanche_f2ocl.baselines.prefix import prefix_tuning
from avalanche_f2ocl.config import check_choice
from avalanche_f2ocl.models.base import Prediction
from avalanche_f2ocl.models.batch import OnlineBatch
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.prompts import initial_prompt
from avalanche_f2ocl.state.row_adam import RowAdam

BLOCKS = (0, 1, 2, 3, 4)
"""Blocks with a prefix, counted from 0: those of DualPrompt's two kinds of prompts together."""


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
        backbone: the frozen encoder, of at least five blocks.
        lr: step size.
        mask_logits: as :class:`avalanche_f2ocl.baselines.linear.LinearModel`.
        length, scale, prompt_init, seed: as :class:`SharedPrompt`.

    Attributes:
        prefix: parameter ``(5 blocks, 2, length, D)``: keys, then values.

    Raises:
        ValueError: the backbone has fewer blocks.

    Example:
        >>> from avalanche_f2ocl.backbone.load import load_backbone
        >>> SharedPromptModel(load_backbone("micro_vit"), lr=0.001).prefix.shape
        torch.Size([5, 2, 20, 128])
    """

    def __init__(
        self,
        backbone: PromptableViT,
        lr: float,
        mask_logits: str = "batch",
        length: int = 20,
        scale: float = 5.0,
        prompt_init: str = "uniform",
        seed: int = 0,
    ) -> None:
        depth = len(backbone.vit.blocks)
        if depth <= BLOCKS[-1]:
            raise ValueError(f"backbone has {depth} blocks: SharedPrompt needs at least {BLOCKS[-1] + 1}")
        super().__init__(backbone, lr, mask_logits)
        dim = backbone.embed_dim
        self.head = CosineHead(dim, scale, seed)
        draw = generator(seed, "shared-prompt")
        self.prefix = nn.Parameter(initial_prompt(prompt_init, (len(BLOCKS), 2, length, dim), draw))
        self.optimizer = RowAdam(
            [{"params": [self.prefix], "every_row": True}, {"params": [self.head.weight]}], lr
        )

    def add_classes(self, ids: Tensor) -> None:
        self.classes.add(ids)
        self.head.add_classes(ids)

    def embed(self, tokens: Tensor) -> Tensor:
        """Tokens ``(B, T, D)`` to embeddings under the prefix, ``(B, D)``."""
        prefixes = {block: part.unsqueeze(0) for block, part in zip(BLOCKS, self.prefix, strict=True)}
        with prefix_tuning(self.backbone.vit.blocks, prefixes):
            return self.backbone.encode_tokens(tokens)

    def loss(self, batch: OnlineBatch) -> Tensor:
        return self.cross_entropy(self._batch_embeddings(batch), batch)

    def batch_logits(self, batch: OnlineBatch) -> Tensor:
        return self.head.logits(self._batch_embeddings(batch).detach())

    def _batch_embeddings(self, batch: OnlineBatch) -> Tensor:
        """The training forward, once for the outputs and the loss."""
        if batch.features is None:
            batch.features = self.embed(batch.tokens)
        return batch.features

    @torch.no_grad()
    def predict_batch(self, images: Tensor) -> Prediction:
        tokens = self.backbone.tokens(images)
        return Prediction(self.head.logits(self.embed(tokens)), tokens)


class SharedPrompt(LinearStrategy):
    """One prompt for every image, trained through a cosine head whose loss is masked to the mini-batch's classes.

    After SinglePrompt, which argues that a single prompt does as well as a pool of them: a prompt in the first
    blocks, a cosine head, and logits of classes that are not in the mini-batch masked. Left out: augmentation.

    Args:
        length: keys (and as many values) put into each of the first five blocks.
        scale: of the cosine head.
        prompt_init: as :class:`avalanche_f2ocl.config.F2OCLConfig`.
        lr: Adam's step size; the default comes from a search, see benchmarks/README.md.
        mask_logits, seed: as :class:`avalanche_f2ocl.baselines.linear.LinearStrategy`.
        **options: likewise.

    Raises:
        TypeError, ValueError: an option out of range, a backbone of fewer than five blocks, or as the base.

    Example:
        >>> SharedPrompt(backbone="micro_vit", evaluator=None).model.head.scale
        5.0
    """

    def __init__(
        self,
        *,
        length: int = 20,
        scale: float = 5.0,
        prompt_init: str = "uniform",
        lr: float = 0.01,
        mask_logits: str = "batch",
        seed: int = 0,
        **options,
    ):
        check_positive_int("length", length)
        check_positive("scale", scale)
        check_choice("prompt_init", prompt_init)
        model_type = partial(SharedPromptModel, length=length, scale=scale, prompt_init=prompt_init, seed=seed)
        super().__init__(lr=lr, mask_logits=mask_logits, seed=seed, model_type=model_type, **options)
