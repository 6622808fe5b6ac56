"""DualPrompt's training written out, with the choices of its best-known PyTorch code to take."""

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
    """What a step consists of; the defaults are DualPrompt as it is here.

    Attributes:
        e_length: keys (and values) of an E-prompt.
        lr: step size.
        clip: largest norm of the gradient; None for any.
        dense: one Adam for the whole head, with one count of steps, which also moves absent classes by their momentum.
        head_std: deviation of the head's first weights.
        mask: whose classes the loss runs over.
        chosen: E-prompt in training: each image's by its key; the one that most of a mini-batch's images choose, so in
            testing, too; or the group's own, a copy of the one before, and in testing by vote.
        restart: whether each group has a new optimiser.
        normalise: as the backbone's configuration says, or not at all.
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
        classes: how many.
        choices: of the row.
        seed: of prompts, keys and head.
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
        """The next group of classes begins."""
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
        """One mini-batch; ``classes``: all of the group's."""
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
        """Of a group's test images, in per cent."""
        z = torch.cat([self.embed(view, train=False)[0] for view, _ in views])
        right = F.linear(z, self.weight, self.bias).argmax(1) == torch.cat([labels for _, labels in views])
        return 100 * right.double().mean().item()


class Views:
    """Mini-batches as the frozen backbone sees them, kept: what is the same in all rows is computed once.

    Args:
        make_backbone: of a ``normalise``.
        groups: of the stream.
    """

    def __init__(self, make_backbone: Callable[[Normalise], PromptableViT], groups: list[Group]) -> None:
        self.backbone, self.groups = cache(make_backbone), groups
        self.batches = cache(self._batches)

    def _batches(self, index: int, normalise: Normalise, train: bool) -> list[tuple[ImageView, Tensor]]:
        """Of a group, ten images each, and their labels."""
        images, labels = self.groups[index][:2] if train else self.groups[index][2:]
        parts = zip(images.split(BATCH), labels.split(BATCH), strict=True)
        return [(ImageView(part, self.backbone(normalise)), own) for part, own in parts]


def learn(views: Views, choices: Choices, seed: int) -> Learner:
    """All groups in their order, in mini-batches of ten."""
    classes = [group.labels.unique() for group in views.groups]
    learner = Learner(views.backbone(choices.normalise), 1 + int(torch.cat(classes).max()), choices, seed)
    for index, own in enumerate(classes):
        learner.begin(index)
        for view, labels in views.batches(index, choices.normalise, True):
            learner.step(view, labels, own)
    return learner
