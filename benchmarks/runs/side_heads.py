"""Further heads in one training: each sees what the strategy's own head could see, and has its own accuracy matrix."""

from typing import Any

import numpy as np
from avalanche.benchmarks import CLScenario
from torch import Tensor

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.heads.features import feature_plan, head_features
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
        backbone: the backbone whose ``query``, ``encode_tokens`` and ``encode_layers`` are replaced.

    Attributes:
        prompted, unprompted: embedding and layers of the last mini-batch; None where there was no such pass.
    """

    def __init__(self, backbone: PromptableViT) -> None:
        self.prompted = self.unprompted = None
        self._query, backbone.query = backbone.query, self.query
        self._encode_tokens, backbone.encode_tokens = backbone.encode_tokens, self.encode_tokens
        self._encode_layers, backbone.encode_layers = backbone.encode_layers, self.encode_layers

    def query(self, images: Tensor, tokens: Tensor, replay: bool = False) -> Tensor:
        q = self._query(images, tokens, replay)
        self.unprompted = q, None
        return q

    def encode_tokens(self, tokens: Tensor, prompts: Tensor | None = None, *options: Any, **named: Any) -> Tensor:
        z = self._encode_tokens(tokens, prompts, *options, **named)
        if prompts is not None:
            self.prompted = z.detach(), None
        return z

    def encode_layers(
        self, tokens: Tensor, prompts: Tensor | None = None, *layers: Any, **options: Any
    ) -> tuple[Tensor, Tensor]:
        encoded = self._encode_layers(tokens, prompts, *layers, **options)
        if prompts is None:
            self.unprompted = encoded
        else:
            self.prompted = encoded
        return encoded

    def of(self, kind: str) -> Tensor:
        """The head features ``kind`` of the last mini-batch, ``(B, F)``; without prompts z is q."""
        q, q_layers = self.unprompted
        z, z_layers = self.prompted or self.unprompted
        return head_features(kind, z, q, z_layers, q_layers)


class SideHead(AccuracyMatrix):
    """A head alongside the strategy's own, as a metric that emits nothing; it comes before metrics that encode again.

    Args:
        options: options of the head.
        backbone: the strategy's backbone.
        last: notes what the backbone computed last.
        seed: seed of the head's random projection.

    Attributes:
        figures: A_n, A_n_samples and F_n of the last evaluation.
        predictions, labels: of the last evaluation.
    """

    def __init__(self, options: HeadOptions, backbone: PromptableViT, last: LastFeatures, seed: int) -> None:
        super().__init__()
        self.kind, self.last = options.head_features, last
        self.head = make_head(options, feature_plan(options, backbone).widths, seed)

    def after_training_iteration(self, strategy):
        self.head.add_rows(len(strategy.model.class_ids) - self.head.num_rows)
        rows = strategy.model.classes.rows(strategy.mb_labels).to(strategy.device)
        self.head.update(self.last.of(self.kind), rows, strategy.mb_x)

    def before_eval(self, strategy):
        super().before_eval(strategy)
        self.predictions, self.labels = [], []

    def right(self, strategy) -> Tensor:
        predicted = strategy.model.class_ids[self.head.logits(self.last.of(self.kind)).argmax(1)]
        self.predictions += predicted.tolist()
        self.labels += strategy.mb_labels.tolist()
        return predicted == strategy.mb_y

    def values(self, stream: str, iterations: int) -> dict[str, float | None]:
        self.figures = super().values(stream, iterations)
        return {}
