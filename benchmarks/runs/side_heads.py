"""Further heads in one training: each sees what the strategy's own head could see, and has its own accuracy matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from avalanche.benchmarks import CLScenario
from torch import Tensor

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.heads.features import FeaturePlan, feature_plan, head_features
from avalanche_f2ocl.heads.layers import Layers
from avalanche_f2ocl.heads.make import make_head
from avalanche_f2ocl.metrics.groups import AccuracyMatrix
from avalanche_f2ocl.options import HeadOptions


def by_class(answers: Any, benchmark: CLScenario) -> tuple[np.ndarray, np.ndarray]:
    """Its ``predictions`` and ``labels`` with classes ascending and domains by name, if the benchmark has any, so that
    each image has the same place for every seed."""
    sizes = [len(experience.dataset) for experience in benchmark.test_stream]
    names = getattr(benchmark, "domain_names", None)
    ranks = np.argsort(np.argsort(names)) if names else np.zeros(len(sizes), dtype=int)
    order = np.lexsort((np.repeat(ranks, sizes), answers.labels))
    return np.asarray(answers.predictions)[order], np.asarray(answers.labels)[order]


class LastFeatures:
    """Notes what a backbone computed last, for strategies whose head sees layers.

    Args:
        backbone: the backbone whose ``query``, ``query_layers``, ``encode_tokens`` and ``encode_layers`` are replaced.

    Attributes:
        prompted, unprompted: embedding, layers and their blocks of the last mini-batch; None where there was no such
            pass.
    """

    def __init__(self, backbone: PromptableViT) -> None:
        self.prompted = self.unprompted = None
        self._query, backbone.query = backbone.query, self.query
        self._query_layers, backbone.query_layers = backbone.query_layers, self.query_layers
        self._encode_tokens, backbone.encode_tokens = backbone.encode_tokens, self.encode_tokens
        self._encode_layers, backbone.encode_layers = backbone.encode_layers, self.encode_layers

    def query(self, images: Tensor, tokens: Tensor, replay: bool = False) -> Tensor:
        q = self._query(images, tokens, replay)
        self.unprompted = q, None, ()
        return q

    def query_layers(
        self, images: Tensor, tokens: Tensor, blocks: Sequence[int], *options: Any, **named: Any
    ) -> tuple[Tensor, Tensor]:
        encoded = self._query_layers(images, tokens, blocks, *options, **named)
        self.unprompted = *encoded, blocks
        return encoded

    def encode_tokens(self, tokens: Tensor, prompts: Tensor | None = None, *options: Any, **named: Any) -> Tensor:
        z = self._encode_tokens(tokens, prompts, *options, **named)
        if prompts is not None:
            self.prompted = z.detach(), None, ()
        return z

    def encode_layers(
        self, tokens: Tensor, prompts: Tensor | None, blocks: Sequence[int], *options: Any, **named: Any
    ) -> tuple[Tensor, Tensor]:
        encoded = self._encode_layers(tokens, prompts, blocks, *options, **named)
        if prompts is None:
            self.unprompted = *encoded, blocks
        else:
            self.prompted = *encoded, blocks
        return encoded

    def of(self, plan: FeaturePlan) -> Tensor:
        """The features of the last mini-batch that a head sees, ``(B, F)``; without prompts z is q."""
        (q, *q_layers), (z, *z_layers) = self.unprompted, self.prompted or self.unprompted
        return head_features(plan.kind, z, q, chosen(*z_layers, plan.prompted), chosen(*q_layers, plan.unprompted))


def chosen(layers: Tensor | None, blocks: Sequence[int], seen: Layers | None) -> Tensor | None:
    """The blocks that a head sees, of layers ``(B, blocks, K, D)``; None if it sees none."""
    if layers is None or seen is None:
        return None
    return layers[:, [blocks.index(block) for block in seen.blocks]]


class SideHead(AccuracyMatrix):
    """A head alongside the strategy's own, as a metric that emits nothing; it comes before metrics that encode again.

    Args:
        options: options of the head.
        backbone: the strategy's backbone.
        last: notes what the backbone computed last.
        seed: seed of the head's random projection.

    Attributes:
        figures: A_n, A_n_samples and F_n of the last evaluation.
        accuracies: share of right answers of each evaluation so far.
        predictions, labels: of the last evaluation.
    """

    def __init__(self, options: HeadOptions, backbone: PromptableViT, last: LastFeatures, seed: int) -> None:
        super().__init__()
        self.plan, self.last = feature_plan(options, backbone), last
        self.head = make_head(options, self.plan.widths, seed)
        self.accuracies: list[float] = []

    def after_training_iteration(self, strategy):
        self.head.add_rows(len(strategy.model.class_ids) - self.head.num_rows)
        rows = strategy.model.classes.rows(strategy.mb_labels).to(strategy.device)
        self.head.update(self.last.of(self.plan), rows, strategy.mb_x)

    def before_eval(self, strategy):
        super().before_eval(strategy)
        self.predictions, self.labels = [], []

    def right(self, strategy) -> Tensor:
        predicted = strategy.model.class_ids[self.head.logits(self.last.of(self.plan)).argmax(1)]
        self.predictions += predicted.tolist()
        self.labels += strategy.mb_labels.tolist()
        return predicted == strategy.mb_y

    def values(self, stream: str, iterations: int) -> dict[str, float | None]:
        self.figures = super().values(stream, iterations)
        self.accuracies.append(float(np.equal(self.predictions, self.labels).mean()))
        return {}
