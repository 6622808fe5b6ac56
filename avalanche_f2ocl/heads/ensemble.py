"""Heads that each see a part of the features and add up their logits."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from avalanche_f2ocl.arguments import check_choice
from avalanche_f2ocl.heads.head import Judging, SumHead
from avalanche_f2ocl.heads.second_moments import SecondMomentHead
from avalanche_f2ocl.heads.solution import Solution
from avalanche_f2ocl.options import Vote
from avalanche_f2ocl.state.class_means import mask_unseen
from avalanche_f2ocl.state.distinct import image_codes
from avalanche_f2ocl.state.rows import ClassRows

SHARPNESS = 4
"""Power of the odds: a head with twice the odds has sixteen times the weight."""


class EnsembleHead(ClassRows):
    r"""The weighted sum of the logits of heads that learn side by side, each from its part of the vectors.

    A head on fewer features is solved faster, takes less memory and can be given less weight. From its sums each ridge
    regression knows which share :math:`R^2` of the labels' variance it predicts for images it has not seen. The weight
    of its logits is :math:`(R^2 / (1 - R^2))^4`, divided by the mean over heads.

    Args:
        heads: the heads; the length of the vectors is the sum of their numbers of features.
        vote: ``"evidence"``, these weights, and 1 for heads that do not know :math:`R^2`; ``"equal"``, the same weight
            for all.

    Attributes:
        heads: the heads.
        counts: samples seen by class, ``(capacity,)`` int64.

    Raises:
        ValueError: ``vote`` is neither of these.

    Example:
        >>> from avalanche_f2ocl.heads import RidgeHead
        >>> head = EnsembleHead([RidgeHead(2, projection=0, ridge=1.0, priors="counts") for _ in range(2)])
        >>> _ = head.add_rows(2)
        >>> head.update(torch.eye(2).repeat(1, 2), torch.tensor([0, 1]))
        >>> head.logits(torch.eye(2).repeat(1, 2)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    heads: Any
    counts: Tensor

    def __init__(self, heads: Sequence[SumHead], vote: Vote = "evidence") -> None:
        super().__init__()
        check_choice("vote", vote, ("evidence", "equal"))
        self.register_rows("counts", dtype=torch.int64, summed=True)
        self.heads, self.vote = nn.ModuleList(heads), vote  # type: ignore[arg-type]
        self.widths = [head.means().shape[1] for head in self.heads]

    def add_rows(self, count: int) -> slice:
        for head in self.heads:
            head.add_rows(count)
        return super().add_rows(count)

    @torch.no_grad()
    def update(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """Adds a mini-batch, see :class:`avalanche_f2ocl.heads.head.SumHead`; each head gets its part."""
        self.counts.index_add_(0, rows, torch.ones_like(rows))
        for head, part, codes in self._parts(vectors, images):
            head.update(part, rows, **codes)

    @torch.no_grad()
    def remove(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """Takes a mini-batch out again, see :class:`avalanche_f2ocl.heads.head.SumHead`; each head gets its part."""
        for head, part, codes in self._parts(vectors, images):
            head.remove(part, rows, **codes)
        self.counts.index_add_(0, rows, torch.ones_like(rows), alpha=-1)

    def _parts(self, vectors: Tensor, images: Tensor | None) -> Iterator[tuple[Any, Tensor, dict[str, Any]]]:
        """Each head with its part of the vectors, and the images' codes, made once for all heads that need them."""
        counts_copies = any(isinstance(head, SecondMomentHead) for head in self.heads)
        codes = None if images is None or not counts_copies else image_codes(images)
        for head, part in zip(self.heads, vectors.split(self.widths, dim=1), strict=True):
            yield head, part, {"codes": codes} if isinstance(head, SecondMomentHead) else {}

    def means(self, rows: Tensor | None = None) -> Tensor:
        """Class means, ``(N or C, F)`` float32."""
        return torch.cat([head.means(rows) for head in self.heads], dim=1)

    def prepare(self) -> None:
        """Solves now what the next prediction would otherwise have to solve."""
        for head in self.heads:
            head.prepare()

    def logits(self, vectors: Tensor) -> Tensor:
        """Scores of ``vectors (B, F)`` for the classes so far: ``(B, C)`` float32."""
        parts = vectors.split(self.widths, dim=1)
        scores = torch.stack([head.logits(part) for head, part in zip(self.heads, parts, strict=True)])
        return mask_unseen((self.weights().to(scores).view(-1, 1, 1) * scores).sum(0), self.used("counts"))

    def weights(self, solutions: Sequence[Solution] | None = None) -> Tensor:
        """Weights of the heads, ``(heads,)`` float64, 1 on average; from ``solutions``, by default the heads' own."""
        if self.vote == "equal" or not all(hasattr(head, "evidence_of") for head in self.heads):
            return torch.ones(len(self.heads), dtype=torch.float64)
        solutions = [head.solution() for head in self.heads] if solutions is None else solutions
        pairs = zip(self.heads, solutions, strict=True)
        return vote_weights(torch.stack([head.evidence_of(solution) for head, solution in pairs]))

    @property
    def at_once(self) -> bool:
        return all(getattr(head, "at_once", False) for head in self.heads)

    @property
    def judging(self) -> Judging:
        return max((head.judging for head in self.heads), key=lambda judging: judging.growth)

    @property
    def linear_width(self) -> int | None:
        widths = [getattr(head, "linear_width", None) for head in self.heads]
        known = [width for width in widths if width is not None]
        return sum(known) if len(known) == len(widths) else None

    def features(self, vectors: Tensor) -> Tensor:
        """The features of all heads, concatenated: ``(B, F)`` to ``(B, P)``."""
        parts = vectors.split(self.widths, dim=1)
        return torch.cat([head.features(part) for head, part in zip(self.heads, parts, strict=True)], dim=1)

    def linear(self) -> tuple[Tensor, Tensor]:
        """The present linear classifier, see :class:`avalanche_f2ocl.heads.head.Linear`."""
        solutions = [head.solved() for head in self.heads]
        weights = self.weights(solutions).to(solutions[0].weight)
        parts = [solution.linear() for solution in solutions]
        weight = torch.cat([by * weight for by, (weight, _) in zip(weights, parts, strict=True)], dim=1)
        return weight, (weights @ torch.stack([bias for _, bias in parts]))


def vote_weights(evidence: Tensor) -> Tensor:
    r"""Weights :math:`(R^2 / (1 - R^2))^4`, divided by their mean.

    Args:
        evidence: :math:`R^2` of each head, in [0, 1), ``(heads,)`` float64.

    Example:
        >>> vote_weights(torch.tensor([0.5, 0.5])).tolist()
        [1.0, 1.0]
    """
    odds = evidence / (1 - evidence)
    powers = (odds / odds.max().clamp(min=torch.finfo(odds.dtype).tiny)) ** SHARPNESS
    mean = powers.mean()
    return torch.where(mean > 0, powers / mean.clamp(min=torch.finfo(odds.dtype).tiny), 1.0)
