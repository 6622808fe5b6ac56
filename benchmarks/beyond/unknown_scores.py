"""Scores by which images of unlearned classes may be told from known ones, of images that have been encoded."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.config import PRESETS, F2OCLConfig, FrozenConfig
from avalanche_f2ocl.heads import LDAHead, NCMHead, RidgeHead
from avalanche_f2ocl.heads.calibration import Calibration
from avalanche_f2ocl.heads.familiarity import DISTANCE, Familiarity
from avalanche_f2ocl.heads.features import feature_plan
from avalanche_f2ocl.heads.lda import shrunk
from avalanche_f2ocl.heads.make import make_head
from avalanche_f2ocl.models.early import plan_pass
from avalanche_f2ocl.options import HeadOptions
from benchmarks.beyond.encoded import Encoded

WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)
"""Weights of the distance that are tried."""
METHODS: dict[str, HeadOptions] = {
    "class means": FrozenConfig(),
    "lda": FrozenConfig(head="lda"),
    "ridge on all blocks": FrozenConfig(head="ridge", projection=0, head_features="layers"),
    "best(), an untrained prompt": F2OCLConfig(**PRESETS["best"]),
}
"""Options of the heads that learn."""
Score = Callable[[Encoded], Tensor]


class Learned:
    """A method's head and its familiarity after a stream, from images that have been encoded.

    Args:
        method: one of :data:`METHODS`.
        backbone: the ViT that encoded the images.
        train: images of the stream.
        order: indices of the images in the stream's order.
    """

    def __init__(self, method: str, backbone: PromptableViT, train: Encoded, order: Tensor) -> None:
        options = METHODS[method]
        plan = feature_plan(options, backbone)
        self.method, self.early = method, plan_pass(backbone, None).blocks[0]
        self.head: Any = make_head(options, plan.widths, seed=0)
        self.calibration = Calibration(self.head)
        self.familiarity = Familiarity(backbone.embed_dim, len(self.embeddings(train.of(order[:1]))[0]))
        for part in (self.head, self.calibration, self.familiarity):
            part.add_rows(int(train.labels.max()) + 1)
        for number, rows in enumerate(order.split(10), start=1):
            part, labels = train.of(rows), train.labels[rows]
            features, embeddings = self.features(part), self.embeddings(part)
            self.familiarity.judge(embeddings, labels, self.calibration.judge(self.head, features, labels))
            self.head.update(features, labels)
            self.calibration.hold(self.head, number)
            self.familiarity.learn(embeddings, labels, number)

    def features(self, data: Encoded) -> Tensor:
        """The head's features, ``(N, F)``."""
        if METHODS[self.method].head_features == "q":
            return data.q
        return data.without_prompt() if self.method == "ridge on all blocks" else data.layers.float()

    def embeddings(self, data: Encoded) -> Tensor:
        """The embeddings that familiarity is computed from, ``(N, parts, D)``."""
        prompted, dim = self.method.startswith("best"), data.q.shape[1]
        layers = data.layers[:, : data.widths[0]] if prompted else data.layers[:, data.widths[0] :]
        layers = layers.view(len(layers), -1, 5 if prompted else 2, dim)  # a class token and four cells, or one
        early = layers[:, self.early, 1:].float().mean(1)
        return torch.stack([data.q, *([data.z] if prompted else []), early], dim=1)

    def highest(self, data: Encoded) -> Tensor:
        """The head's highest logits, ``(N,)``."""
        parts = torch.arange(len(data.labels)).split(500)
        return torch.cat([self.head.logits(self.features(data.of(part))).amax(1) for part in parts])

    def score(self, data: Encoded) -> Tensor:
        """The familiarity of images, ``(N,)``."""
        return self.familiarity.scores(self.embeddings(data), self.highest(data) if self.calibration.holds else None)


def alternatives(model: Learned) -> dict[str, Score]:
    """What familiarity could be made of: likeness by parts and by the weight of the distance, and the logit alone.

    Heads on the pass without a prompt share their likeness, so it is tried for class means only.
    """
    familiarity, scores = model.familiarity, {}

    def likeness(weight: float, parts: int, data: Encoded) -> Tensor:
        cosines, distances = familiarity.nearest(model.embeddings(data))
        return (cosines - weight * distances)[:parts].mean(0)

    every = len(familiarity.sums)
    if not model.calibration.holds or every > 2:
        scores = {f"distance {weight}": partial(likeness, weight, every) for weight in WEIGHTS}
        scores["without early patches"] = partial(likeness, DISTANCE, every - 1)
    if model.calibration.holds:
        scores["the highest logit"] = model.highest
    return scores


def candidates(train: Encoded, order: Tensor) -> dict[str, Score]:
    """Other scores, of heads on the embedding."""
    units, classes = F.normalize(train.q, dim=1), int(train.labels.max()) + 1
    ncm, lda, ridge = NCMHead(units.shape[1]), LDAHead(units.shape[1]), RidgeHead(units.shape[1], projection=0)
    for head in (ncm, lda, ridge):
        head.add_rows(classes)
        head.update(units, train.labels)
    means, precision = lda.means().double(), lda.precision()
    middle = units.double().mean(0)
    around = shrunk((units.double() - middle).T @ (units.double() - middle) / len(units), torch.tensor(len(units)))
    background = torch.linalg.inv(around)

    def squares(data: Encoded) -> Tensor:
        away = F.normalize(data.q, dim=1).double().unsqueeze(1) - means
        return torch.stack([((part @ precision) * part).sum(-1).amin(0) for part in away])

    def to_all(data: Encoded) -> Tensor:
        away = F.normalize(data.q, dim=1).double() - middle
        return ((away @ background) * away).sum(1)

    def logits(head: NCMHead | RidgeHead) -> Score:
        return lambda data: head.logits(F.normalize(data.q, dim=1))

    cosines, outputs = logits(ncm), logits(ridge)
    return {
        "top probability (class means)": lambda data: (cosines(data) / 0.05).softmax(1).amax(1),
        "top cosine": lambda data: cosines(data).amax(1),
        "top logit (ridge)": lambda data: outputs(data).amax(1),
        "energy (ridge)": lambda data: (3 * outputs(data)).logsumexp(1),
        "Mahalanobis": lambda data: -squares(data),
        "relative Mahalanobis": lambda data: to_all(data) - squares(data),
    }
