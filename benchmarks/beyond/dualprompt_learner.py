"""DualPrompt's training written out, with options for the choices of its best-known PyTorch code."""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.dualprompt import DualPromptModel
from avalanche_f2ocl.models.batch import ImageView
from avalanche_f2ocl.options import Normalise
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.row_adam import RowAdam

BATCH = 10


class Choices(NamedTuple):
    """The choices of a training step; the defaults are those of our DualPrompt.

    Attributes:
        e_length: number of keys (and of values) of an E-prompt.
        lr: step size.
        clip: largest norm of the gradient; None for no limit.
        dense: whether one Adam, with one step count, updates the whole head and so moves absent classes by momentum.
        head_std: standard deviation of the head's initial weights.
        mask: the classes that the loss runs over, those of the mini-batch or of the group.
        chosen: how E-prompts are chosen: each image's by its key; the one that most images of a mini-batch choose, also
            in testing; or the group's own, initially a copy of the group's before, and in testing by vote.
        restart: whether each group has a new optimiser.
        normalise: whether images are normalised as the backbone's configuration says, or not at all.
    """

    e_length: int = 20
    lr: float = 0.001
    clip: float | None = None
    dense: bool = False
    head_std: float = 0.0
    mask: Literal["batch", "group"] = "batch"
    chosen: Literal["key", "vote", "group"] = "key"
    restart: bool = False
    normalise: Normalise = "backbone"


class Group(NamedTuple):
    """Images ``(N, C, H, W)`` and labels ``(N,)`` of a group of classes, for training and testing."""

    images: Tensor
    labels: Tensor
    test_images: Tensor
    test_labels: Tensor


class Learner:
    """DualPrompt's prompts and a head with a row for every class there will be, and the step of a row's choices.

    Args:
        backbone: the frozen ViT.
        classes: number of classes.
        choices: choices of the row.
        seed: seed of prompts, keys and head.
    """

    def __init__(self, backbone: PromptableViT, classes: int, choices: Choices, seed: int) -> None:
        self.choices, self.group = choices, 0
        self.model = DualPromptModel(backbone, e_length=choices.e_length, seed=seed)
        draw = torch.randn(classes, backbone.embed_dim, generator=generator(seed, "head"))
        self.weight, self.bias = nn.Parameter(choices.head_std * draw), nn.Parameter(torch.zeros(classes))
        self.optimizer = self.make_optimizer()

    def make_optimizer(self) -> Any:
        prompts, head = [*self.model.prompts.parameters()], [self.weight, self.bias]
        if self.choices.dense:
            return torch.optim.Adam([*prompts, *head], self.choices.lr)
        return RowAdam([{"params": prompts, "every_row": True}, {"params": head}], self.choices.lr)

    @torch.no_grad()
    def begin(self, group: int) -> None:
        """Begins the next group of classes."""
        if self.choices.chosen == "group" and group > 0:
            prompts = self.model.prompts.expert.prompts
            prompts[group] = prompts[group - 1]
        if self.choices.restart:
            self.optimizer = self.make_optimizer()
        self.group = group

    def embed(self, view: ImageView, train: bool) -> tuple[Tensor, Tensor]:
        """Embeddings ``(B, D)`` and cosine similarities to the keys of their E-prompts ``(B, 1)``."""
        pool, chosen = self.model.prompts.expert, self.choices.chosen
        if chosen == "key":
            prompted = self.model.embed(view)
            assert prompted.similarity is not None
            return prompted.z, prompted.similarity
        similarity = F.normalize(view.q, dim=1) @ F.normalize(pool.keys, dim=1).T
        row = self.group if chosen == "group" and train else int(similarity.argmax(1).mode().values)
        return self.model.embed_under(view.tokens, torch.full((len(view.q),), row)), similarity[:, row : row + 1]

    def step(self, view: ImageView, labels: Tensor, classes: Tensor) -> None:
        """Learns one mini-batch; ``classes`` are all classes of the group."""
        z, similarity = self.embed(view, train=True)
        classes = labels.unique() if self.choices.mask == "batch" else classes
        logits = F.linear(z, self.weight, self.bias)
        absent = torch.ones(len(self.bias), dtype=torch.bool).index_fill_(0, classes, False)
        loss = F.cross_entropy(logits.masked_fill(absent, -torch.inf), labels) + (1 - similarity).mean()
        self.optimizer.zero_grad()
        loss.backward()
        if self.choices.clip is not None:
            nn.utils.clip_grad_norm_([p for g in self.optimizer.param_groups for p in g["params"]], self.choices.clip)
        self.optimizer.step()

    @torch.no_grad()
    def accuracy(self, views: list[tuple[ImageView, Tensor]]) -> float:
        """Accuracy on a group's test images, in per cent."""
        z = torch.cat([self.embed(view, train=False)[0] for view, _ in views])
        right = F.linear(z, self.weight, self.bias).argmax(1) == torch.cat([labels for _, labels in views])
        return 100 * right.double().mean().item()


class Views:
    """Keeps mini-batches as the frozen backbone sees them, so that what all rows share is computed once.

    Args:
        make_backbone: makes the backbone, given ``normalise``.
        groups: groups of the stream.
    """

    def __init__(self, make_backbone: Callable[[Normalise], PromptableViT], groups: list[Group]) -> None:
        self.backbone, self.groups = cache(make_backbone), groups
        self.batches = cache(self._batches)

    def _batches(self, index: int, normalise: Normalise, train: bool) -> list[tuple[ImageView, Tensor]]:
        """Mini-batches of a group, ten images each, and their labels."""
        images, labels = self.groups[index][:2] if train else self.groups[index][2:]
        parts = zip(images.split(BATCH), labels.split(BATCH), strict=True)
        return [(ImageView(part, self.backbone(normalise)), own) for part, own in parts]


def learn(views: Views, choices: Choices, seed: int) -> Learner:
    """Learns all groups in order, in mini-batches of ten."""
    classes = [group.labels.unique() for group in views.groups]
    learner = Learner(views.backbone(choices.normalise), 1 + int(torch.cat(classes).max()), choices, seed)
    for index, own in enumerate(classes):
        learner.begin(index)
        for view, labels in views.batches(index, choices.normalise, True):
            learner.step(view, labels, own)
    return learner
