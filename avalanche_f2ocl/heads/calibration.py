"""A temperature that makes probabilities honest, learned from mini-batches before they are learned."""

from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.heads.head import Judging
from avalanche_f2ocl.state.class_means import MASKED_LOGIT, mask_unseen
from avalanche_f2ocl.state.replaced import ReplacedRows

RIVALS = 255
"""Other classes, those with the highest logits, that a sample's probability is made with in training."""
FIRST_HOLD = 8
"""Mini-batches after which a head that must be solved is solved for the first time."""
SMALLEST_SQUARE = 1e-20
"""Of a deviation, so that the logit of a single class stays finite."""
ENOUGH = 10
"""Judged samples, in effect, from which on the temperature is theirs."""


class Calibration(ReplacedRows):
    r"""Which temperature :math:`T` makes ``softmax(l / T)`` probabilities, by test-then-train.

    Here :math:`l_i` are the logits of image i divided by a deviation :math:`d_i`, since how far its logits spread over
    all classes says little about how certain the highest is. With the variance :math:`v_i` of its logits over the C
    known classes, its typical value v, and a = 20,

    .. math:: d_i^2 = \frac{C v_i + a v}{C + a} .

    Before a mini-batch is learned, the head scores its samples of known classes, and the Brier score under each of 141
    temperatures is added up,

    .. math:: \sum_i n_i^p C_i^q \sum_c (\operatorname{softmax}(l_i / T)_c - [c = y_i])^2 ,

    where :math:`n_i` is how many samples of its class the head had seen, and :math:`C_i` how many classes, since a head
    is too far from its final state where those are few: p = 2 and q = 0 for class means and LDA, p = q = 1 for ridge
    regression. The sums are never forgotten; the order of classes, and what is absent, matters little. To them comes
    half a sample that is wrong by chance (Krichevsky and Trofimov, 1981): no evidence makes the head quite sure.

    A head that must be solved is not solved for every mini-batch: the linear classifier that it was after 8
    mini-batches, and after each ``growth`` times as many, judges those that follow, among the classes it knew.

    The order of an image's logits does not change. Memory: 2 KB, and ``4 P`` bytes a class for P features of a head
    that must be solved.

    Source: temperature scaling: Guo et al., On Calibration of Modern Neural Networks, 2017; test-then-train: Gama,
    Sebastiao and Rodrigues, On Evaluating Stream Learning Algorithms, 2013.

    Args:
        head: the head that is judged, see :class:`avalanche_f2ocl.heads.head.Linear`; another head has no calibration.
        judging: p, q, the growth and a; by default the head's own.

    Attributes:
        losses: weighted Brier scores, ``(141,)`` float64, less what does not depend on T.
        right: weighted probabilities of the right class, ``(141,)`` float64.
        evidence: sum of the weights and of their squares, ``(2,)`` float64.
        spread: weighted sum of the variances of logits, float64 scalar.

    Example:
        >>> from avalanche_f2ocl.heads import NCMHead
        >>> head = NCMHead(dim=2)
        >>> calibration = Calibration(head)
        >>> _ = head.add_rows(2), calibration.add_rows(2)
        >>> head.update(torch.eye(2), torch.tensor([0, 1]))
        >>> calibration.judge(head, torch.eye(2).repeat(50, 1), torch.tensor([0, 1]).repeat(50))
        >>> bool(calibration.probabilities(head.logits(torch.eye(2)), 1.0).diag().min() > 0.98)
        True
    """

    losses: Tensor
    right: Tensor
    evidence: Tensor
    spread: Tensor
    temperatures: Tensor

    def __init__(self, head: Any, judging: Judging | None = None) -> None:
        super().__init__()
        self.judging: Judging = getattr(head, "judging", Judging(samples=0)) if judging is None else judging
        self.at_once = bool(getattr(head, "at_once", False))
        width = None if self.at_once else getattr(head, "linear_width", None)
        self.holds = width is not None
        if width is not None:
            self.register_rows("weight", width)
            self.register_rows("bias")
        self.register_rows("counts", dtype=torch.int64)  # of the held classifier
        self.register_buffer("temperatures", torch.logspace(-4, 3, 141, dtype=torch.float64), persistent=False)
        for name, shape in (("losses", (141,)), ("right", (141,)), ("evidence", (2,)), ("spread", ())):
            self.register_buffer(name, torch.zeros(shape, dtype=torch.float64))

    @torch.no_grad()
    def judge(self, head: Any, vectors: Tensor, rows: Tensor) -> Tensor | None:
        """Takes in how the head scores ``vectors (B, F)`` of the classes ``rows (B,)`` before it learns them.

        Returns:
            The highest logits of a head that must be solved, ``(B,)``, NaN where the class was unknown; else None.
        """
        if not (self.at_once or self.holds):
            return None
        if self.at_once:
            logits, counts = head.logits(vectors), head.used("counts")
        else:
            counts = self.used("counts")
            logits = mask_unseen(head.features(vectors).float() @ self.used("weight").T + self.used("bias"), counts)
        known = counts > 0
        weights = torch.where(known, counts.double() ** self.judging.samples, 0)[rows]
        weights = weights * known.sum() ** self.judging.classes
        # New tensors, since an undone mini-batch puts the old ones back.
        self.evidence = self.evidence + torch.stack([weights.sum(), weights.square().sum()])
        self.spread = self.spread + weights @ variances(logits)
        losses, right = brier_scores(self.evened(logits), rows, self.temperatures)
        self.losses, self.right = self.losses + weights @ losses, self.right + weights @ right
        return logits.amax(1).where(counts[rows] > 0, torch.nan) if self.holds else None

    @torch.no_grad()
    def hold(self, head: Any, batches: int) -> None:
        """Keeps the classifier that the head is now, if it is time to after so many mini-batches."""
        if not self.holds or not is_due(batches, self.judging.growth):
            return
        weight, bias = head.linear()
        for name, values in (("weight", weight), ("bias", bias), ("counts", head.used("counts"))):
            held = torch.zeros_like(getattr(self, name))
            held[: self.num_rows] = values
            setattr(self, name, held)

    def evened(self, logits: Tensor) -> Tensor:
        """Logits ``(B, C)``, each image's divided by its deviation d."""
        known = (logits > MASKED_LOGIT / 2).sum(1)
        own = known / (known + self.judging.steadiness)
        typical = self.spread / self.evidence[0].clamp(min=torch.finfo(torch.float64).tiny)
        squares = (own * variances(logits) + (1 - own) * typical).clamp(min=SMALLEST_SQUARE)
        return logits / squares.sqrt().unsqueeze(1).to(logits)

    def probabilities(self, logits: Tensor, default: float) -> Tensor:
        """Probabilities of a head's logits, ``(B, C)``; at the temperature ``default`` while there is none."""
        temperature = self.temperature().to(logits)
        calibrated = self.evened(logits) / temperature
        return torch.where(temperature.isnan(), logits / default, calibrated).softmax(1)

    def temperature(self) -> Tensor:
        """The temperature T, float64 scalar on the device; NaN while too few samples have been judged."""
        total, squares = self.evidence
        samples = total.square() / squares.clamp(min=torch.finfo(squares.dtype).tiny)
        # One sample's share of the evidence; a wrong sample instead of a right one loses twice its probability.
        losses = self.losses + 2 * self.right / samples.clamp(min=1)
        return torch.where(samples >= ENOUGH, lowest(self.temperatures, losses), torch.nan)


def is_due(batches: int, growth: float, first: int = FIRST_HOLD) -> bool:
    """Whether a number of mini-batches is the first to reach ``first`` times a power of ``growth``.

    Example:
        >>> [batches for batches in range(100) if is_due(batches, 2)]
        [8, 16, 32, 64]
    """
    mark = float(first)
    while mark <= batches - 1:
        mark *= growth
    return mark <= batches


def variances(logits: Tensor) -> Tensor:
    """Variances of each image's logits ``(B, C)`` over the classes that are not masked: ``(B,)`` float64.

    Example:
        >>> variances(torch.tensor([[1.0, 3.0, MASKED_LOGIT]])).tolist()
        [1.0]
    """
    known = logits > MASKED_LOGIT / 2
    number = known.sum(1, keepdim=True).clamp(min=1)
    means = logits.double().where(known, 0).sum(1, keepdim=True) / number
    return ((logits - means).where(known, 0).square() / number).sum(1)


def brier_scores(logits: Tensor, rows: Tensor, temperatures: Tensor) -> tuple[Tensor, Tensor]:
    """Brier scores less 1, and the right class's probabilities, under several temperatures.

    Args:
        logits: ``(B, C)``; of the wrong classes the ``RIVALS`` highest count.
        rows: right classes, ``(B,)`` int64.
        temperatures: ``(K,)``.

    Returns:
        Both ``(B, K)`` float64.

    Example:
        >>> [values.tolist() for values in brier_scores(torch.zeros(1, 2), torch.tensor([0]), torch.ones(1))]
        [[[-0.5]], [[0.5]]]
    """
    own = logits.gather(1, rows.unsqueeze(1))
    others = logits.scatter(1, rows.unsqueeze(1), 2 * MASKED_LOGIT)
    others = others.topk(min(RIVALS, others.shape[1]), dim=1).values
    scores = torch.cat([own, others], dim=1).unsqueeze(1) / temperatures.to(logits).unsqueeze(1)
    shares = scores.softmax(2)
    right = shares[:, :, 0].double()
    return shares.square().sum(2).double() - 2 * right, right


def lowest(places: Tensor, losses: Tensor) -> Tensor:
    """Where losses ``(K,)`` at ``places (K,)``, evenly spaced by their logarithm, are least; by a parabola between.

    Example:
        >>> places = torch.tensor([1.0, 10.0, 100.0])
        >>> lowest(places, torch.tensor([2.0, 1.0, 2.0])).item()
        10.0
    """
    best = losses.argmin().clamp(1, len(losses) - 2)
    left, middle, right = losses[best - 1], losses[best], losses[best + 1]
    curve = (left - 2 * middle + right).clamp(min=torch.finfo(losses.dtype).tiny)
    step = ((left - right) / (2 * curve)).clamp(-1, 1)
    return places[best] * (places[1] / places[0]) ** step
