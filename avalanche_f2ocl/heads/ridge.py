"""Ridge regression on one-hot labels, optionally on random features."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.heads.head import Judging
from avalanche_f2ocl.heads.projection import random_features as make_features
from avalanche_f2ocl.heads.regression import gcv_ridge, given_ridge, predicted_share, root_mean_square, root_of_mean
from avalanche_f2ocl.heads.running_inverse import corrected, downdate, inverse_of, output_squares, well_conditioned
from avalanche_f2ocl.heads.second_moments import SecondMomentHead
from avalanche_f2ocl.heads.solution import Settings, Solution
from avalanche_f2ocl.options import RandomFeatures

UNASKED = 8
"""A solution is kept current for this many mini-batches without a prediction; after them it is dropped."""
GROWTH = 1.1
"""The penalty is chosen again once the samples or classes have grown by this share."""
FEW = 8
"""Up to as many samples as features divided by this, solving is cheaper than keeping a solution current."""
LARGEST_SHARE = 4
"""A mini-batch of more samples than the number of features divided by this costs as much as solving."""


class RidgeFacts(NamedTuple):
    """What a head remembers about its solution.

    Attributes:
        penalty: penalty of the solution.
        evidence: share of the labels' squares that is predicted, see :meth:`RidgeHead.evidence`.
        samples, classes: how many there were when the head was last solved in full.
        unasked: number of mini-batches since the last prediction.
    """

    penalty: float
    evidence: float
    samples: float
    classes: float
    unasked: float = 0

    def hold(self, samples: int, classes: int) -> bool:
        """Whether the solution should be kept current, given the present numbers of samples and classes."""
        grown = samples <= GROWTH * self.samples and classes <= GROWTH * self.classes
        return grown and self.unasked < UNASKED


class RidgeHead(SecondMomentHead):
    """Ridge regression of one-hot labels, without intercept; each class's output is divided by its root mean square.

    Least squares sees rare classes so seldom that their outputs are very small. Hence each output is divided by its
    root mean square over the samples so far, which the sums give. Where this head is better than RanPAC's classifier,
    the division is the reason; generalised cross-validation needs no held-out samples, but its penalties are seldom
    better.

    Solving takes ``O(P**3)`` for P features, or ``O(P N**2)`` for N samples up to P / 4; benchmarks/README.md has the
    times measured on one core of a server. Beyond P / 8 samples, while predictions and mini-batches alternate, the
    solution is kept current in ``O(B P**2)`` for a mini-batch of B, with another ``8 P**2`` bytes. This is exact except
    that the penalty stays the one chosen when the head was solved. The head is solved in full again after a tenth more
    samples or classes, after eight mini-batches without a prediction, after a mini-batch of more than P / 4 samples,
    after a class was forgotten, and when rounding errors would become visible.

    Source: random features and ridge for frozen backbones: McDonnell et al., RanPAC: Random Projections and
    Pre-trained Models for Continual Learning, 2023. Generalised cross-validation: Golub, Heath and Wahba, 1979.

    Args:
        dim: length F of the vectors.
        projection: number P of features of the random projection; 0 for the vectors themselves. None for 5,000
            if there is a CUDA device and 2,000 otherwise, or for the number in the file that is loaded.
        ridge: added to the moment's diagonal; None to choose it by generalised cross-validation from the sums.
        priors: ``"equal"``, as above; ``"counts"`` for the regression's own outputs, which grow with a class's share
            of the samples.
        seed: seed of the projection.
        random_features, gamma: kind and kernel width of the projection, see
            :func:`avalanche_f2ocl.heads.projection.random_features`.

    Attributes:
        FACTS: number of facts that are saved with a solution, see :class:`SecondMomentHead`.

    Example:
        >>> head = RidgeHead(dim=2, projection=0, ridge=1.0, priors="counts")
        >>> _ = head.add_rows(2)
        >>> head.update(torch.eye(2), torch.tensor([0, 1]))
        >>> head.logits(torch.eye(2)).tolist()
        [[0.5, 0.0], [0.0, 0.5]]
    """

    FACTS = len(RidgeFacts._fields)
    judging = Judging(samples=1, classes=1, growth=1.5)

    def __init__(
        self,
        dim: int,
        projection: int | None = None,
        ridge: float | None = None,
        priors: str = "equal",
        seed: int = 0,
        random_features: RandomFeatures = "relu",
        gamma: float | None = None,
    ) -> None:
        width = default_width() if projection is None else projection
        super().__init__(dim, make_features(dim, width, seed, random_features, gamma) if width else None)
        self.ridge, self.priors, self._any_width = ridge, priors, projection is None

    def settings(self) -> Settings:
        return 1, -1 if self.ridge is None else self.ridge, self.priors == "counts"

    def solve(self, moment: Tensor, total: Tensor, distinct: Tensor) -> Solution:
        sums, counts = self.used(self.feature_sums_name), self.used("counts")
        penalty = self.chosen(moment)
        if penalty is None:
            solved = gcv_ridge(moment, sums, total, distinct, counts)
        else:
            solved = given_ridge(moment, sums, penalty, total, distinct, counts)
        evidence = predicted_share(solved.error, total)
        facts = RidgeFacts(float(solved.penalty), float(evidence), float(total), self.num_rows)
        equal = self.priors == "equal"
        scale = root_mean_square(solved.weight, moment, total) if equal else moment.new_ones(len(sums))
        return Solution(solved.weight, torch.zeros_like(scale), scale, facts)

    def chosen(self, moment: Tensor) -> float | None:
        """The penalty; None to choose it by generalised cross-validation."""
        return self.ridge

    def advance(self, solution: Solution, features: Tensor, rows: Tensor) -> Solution | None:
        facts, total = RidgeFacts(*solution.facts), int(self.total_now())
        width = len(self.moment)
        if total <= width / FEW or len(features) > width / LARGEST_SHARE or not facts.hold(total, self.num_rows):
            return None
        if not well_conditioned(self.moment, features, facts.penalty):
            return None
        if solution.inverse is None:
            inverse = inverse_of(self.moment_now(), facts.penalty)
            gain = None if inverse is None else features @ inverse
        else:
            inverse = solution.inverse
            gain = downdate(inverse, features)
        if gain is None:
            return None
        new = self.num_rows - len(solution.weight)
        weight = corrected(F.pad(solution.weight, (0, 0, 0, new)), features, rows, gain)
        scale = F.pad(solution.scale, (0, new), value=1)
        if self.priors == "equal":
            squares = output_squares(weight, self.used(self.feature_sums_name), facts.penalty)
            if squares is None:
                return None
            scale = root_of_mean(squares, total)
        return Solution(weight, torch.zeros_like(scale), scale, facts._replace(unasked=facts.unasked + 1), inverse)

    def solution(self) -> Solution:
        solution = super().solution()
        facts = RidgeFacts(*solution.facts)
        if facts.unasked:
            solution.facts = facts._replace(unasked=0)
        return solution

    @torch.no_grad()
    def evidence(self) -> Tensor:
        """How well the labels can be predicted from the features, by generalised cross-validation.

        Returns:
            R2, the share of the one-hot labels' squares that is predicted for samples left out, float64
            scalar in [0, 1 - 1e-6]; it dates from when the penalty was last chosen.

        Example:
            >>> head = RidgeHead(dim=1, projection=0, ridge=1.0)
            >>> _ = head.add_rows(1)
            >>> head.update(torch.ones(3, 1), torch.tensor([0, 0, 0]))
            >>> round(head.evidence().item(), 4)  # w = 3 / 4, and 1 - 3 * (1 - w)**2 / (1 - w / 3)**2 / 3
            0.8889
        """
        return self.evidence_of(self.solution())

    def evidence_of(self, solution: Solution) -> Tensor:
        """The evidence, as in :meth:`evidence`, of another solution."""
        return self.moment.new_tensor(RidgeFacts(*solution.facts).evidence)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        moment = state_dict.get(f"{prefix}moment")
        if self.projection is not None and self._any_width and moment is not None and moment.shape != self.moment.shape:
            width = len(moment)
            self.projection.draw(width)
            for name, (sums, _) in self.moments().items():
                setattr(self, name, moment.new_zeros(width, width, device=self.moment.device))
                setattr(self, sums, moment.new_zeros(len(getattr(self, sums)), width, device=self.moment.device))
        super()._load_from_state_dict(state_dict, prefix, *args)


def default_width() -> int:
    """The default number of random features, which can be solved in seconds."""
    return 5000 if torch.cuda.is_available() else 2000
