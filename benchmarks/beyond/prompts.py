"""Other ways to train the shared prompt: other prompts and more steps, with sums that are never stale.

    python -m benchmarks.beyond.prompts --data-dir DIR --weights vit_tiny_patch16_224.safetensors

The first mini-batches of a stream of groups train the prompt by the contrastive loss, until ``max_drift`` stops it.
Then all training images are summed under the final prompt, so that only the prompt's quality counts. Images and splits
are those of ``benchmarks.beyond.features``, and the heads are the recommended ones.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor
from torchvision.transforms import v2

from avalanche_f2ocl.backbone.attention import gradient_attention
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.prefix import prefix_tuning
from avalanche_f2ocl.config import PRESETS, F2OCLConfig
from avalanche_f2ocl.losses import contrastive_prompt_loss
from avalanche_f2ocl.models.max_drift import relative_move
from avalanche_f2ocl.state.class_means import ClassMeans
from avalanche_f2ocl.state.prompts import initial_prompt
from benchmarks.beyond.features import RECOMMENDED, WHOLE, Loaded, Trial, run

TABLE = "prompts"
MAX_BATCHES, PREFIXED = 100, 5
DRIFT, ZOOM = PRESETS["best"]["max_drift"], PRESETS["best"]["zoom"]


class Training(NamedTuple):
    """How a prompt is trained.

    Attributes:
        passes: optimiser steps on each mini-batch; 0 for no training.
        prefix: whether to use keys and values of the first five blocks instead of prompt tokens.
        augmented: whether each pass sees the images cropped and mirrored anew.
        lr: step size.
    """

    passes: int = 1
    prefix: bool = False
    augmented: bool = False
    lr: float = F2OCLConfig.lr


VARIANTS = {
    "not trained": (Training(0), 1.0),
    "as recommended": (Training(), 1.0),
    "as recommended, its votes times 1.5": (Training(), 1.5),
    "three passes": (Training(3), 1.0),
    "three augmented passes": (Training(3, augmented=True), 1.0),
    "prefix, not trained": (Training(0, prefix=True), 1.0),
    "prefix": (Training(prefix=True), 1.0),
    "prefix, lr=0.01": (Training(prefix=True, lr=0.01), 1.0),
    "prefix, three augmented passes, lr=0.01": (Training(3, True, True, 0.01), 1.0),
}
"""How the prompt is trained, and the weight of the prompted half's votes."""


class Prompt:
    """A prompt or prefix for a forward pass, trained or not.

    Args:
        backbone: backbone of the pass.
        prefix: whether it consists of keys and values of blocks; otherwise of tokens.
        seed: seed of the initial values.
    """

    def __init__(self, backbone: PromptableViT, prefix: bool, seed: int) -> None:
        length, dim = F2OCLConfig.prompt_length, backbone.embed_dim
        shape = (PREFIXED, 1, 2, length, dim) if prefix else (1, length, dim)
        values = initial_prompt("uniform", shape, torch.Generator().manual_seed(seed))
        self.backbone, self.prefix, self.values = backbone, prefix, values.requires_grad_()

    @property
    def tokens(self) -> Tensor | None:
        """The prompt tokens to pass to the backbone; None for a prefix."""
        return None if self.prefix else self.values

    def in_blocks(self) -> AbstractContextManager[None]:
        """A context in which the blocks have their prefixes."""
        values = self.values.to(self.backbone.dtype)
        return prefix_tuning(self.backbone.vit.blocks, dict(enumerate(values))) if self.prefix else nullcontext()

    def encode(self, tokens: Tensor) -> Tensor:
        """``(B, D)``."""
        with self.in_blocks(), gradient_attention(tokens):
            return self.backbone.encode_tokens(tokens, self.tokens)


def grouped(rows: Tensor, seed: int, groups: int = 10, size: int = 10) -> Iterator[Tensor]:
    """Mini-batches of indices into ``rows (N,)``, classes in groups one after another."""
    draw = torch.Generator().manual_seed(seed)
    order = torch.randperm(int(rows.max()) + 1, generator=draw)
    for group in order.tensor_split(min(groups, len(order))):
        indices = torch.isin(rows, group).nonzero().squeeze(1)
        yield from indices[torch.randperm(len(indices), generator=draw)].split(size)


def train(prompt: Prompt, images: Tensor, rows: Tensor, training: Training, seed: int) -> float:
    """Trains in place on ``images (N, C, H, W)`` of classes ``rows (N,)``; returns how far embeddings have moved."""
    optimizer, means = torch.optim.Adam([prompt.values], training.lr), ClassMeans(prompt.backbone.embed_dim)
    means.add_rows(int(rows.max()) + 1)
    augment = v2.Compose([v2.RandomResizedCrop(images.shape[-2:], scale=(0.6, 1.0)), v2.RandomHorizontalFlip()])
    moved, steps = 0.0, 0
    for number, part in enumerate(grouped(rows, seed)):
        if number == MAX_BATCHES or moved >= DRIFT:
            break
        y = rows[part]
        first = (y.unsqueeze(1) == y.unsqueeze(0)).float().argmax(1)
        plain, start = prompt.backbone.tokens(images[part], ZOOM), None
        for _ in range(training.passes):
            tokens = prompt.backbone.tokens(augment(images[part]), ZOOM) if training.augmented else plain
            z, steps = prompt.encode(tokens), steps + 1
            if start is None:
                start = prompt.encode(plain).detach() if training.augmented else z.detach()
            counts = means.counts[y]
            prototypes = torch.where(counts.unsqueeze(1) == 0, z.detach()[first], means.means(y))
            optimizer.param_groups[0]["lr"] = training.lr / steps
            optimizer.zero_grad()
            contrastive_prompt_loss(z, first, prototypes, counts, F2OCLConfig.temperature).backward()
            optimizer.step()
        with torch.no_grad():
            after = prompt.encode(plain)
        means.update(after, y)
        if start is not None:
            moved += relative_move(start, after).item()
    return moved


def trials(loaded: Loaded, seed: int) -> dict[str, float]:
    """Accuracy by variant, in per cent."""
    trial, found, done = Trial(*loaded, seed), {}, None
    for variant, (training, weight) in VARIANTS.items():
        prompt = Prompt(trial.backbone, training.prefix, seed)
        if training.passes and training != done:
            torch.manual_seed(seed)  # of the augmentation
            train(prompt, trial.images[trial.train], trial.labels[trial.train], training, seed)
        if training != done:
            trial.use(prompt.tokens, prompt.in_blocks)
        done = training
        found[variant] = round(trial.accuracy((WHOLE, RECOMMENDED), 4, weight), 4)
    return found


if __name__ == "__main__":
    run(__doc__, TABLE, list(VARIANTS), trials)
