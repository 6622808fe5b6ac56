"""How similar an image is to the learned classes, computed from sums alone, for the answer "none of these"."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from avalanche_f2ocl.heads.calibration import is_due
from avalanche_f2ocl.heads.lda import LDAHead
from avalanche_f2ocl.heads.shares import BINS, Range, quantile, share_below
from avalanche_f2ocl.state.replaced import ReplacedRows

DISTANCE = 0.5
"""Weight of the distance; the cosine has weight 1."""
FIRST, GROWTH = 2, 1.1
"""Number of mini-batches before the covariance is first inverted, and the factor by which it grows each time."""
FADING = 1.5
"""Factor by which the number of mini-batches grows until logits counted so far have half their weight."""
LIKENESS, LOGIT, SHARE = Range(-7.0, 1.0), Range(-10.0, 10.0), Range(0.0, 1.0)
"""Ranges of the histograms; logits are counted by their inverse hyperbolic sine."""
ENOUGH = 20
"""Smallest number of scores from which a quantile is taken, and of samples from which a mean counts as accurate."""
FAR = 14.0
"""Distance of a class without samples."""


class Whitening(NamedTuple):
    """The inverse of a covariance within classes.

    Attributes:
        inverse: ``(D, D)`` float32.
        means: of the classes, less their mean, ``(C, D)`` float32.
        centre: their mean, ``(D,)`` float32.
        counts: samples of each class, ``(C,)`` int64.
    """

    inverse: Tensor
    means: Tensor
    centre: Tensor
    counts: Tensor


class Familiarity(ReplacedRows):
    r"""Scores how similar images are to the learned classes, by the share of known images that looked less similar.

    An unknown thing lies far from all classes, or the head finds none of them likely. So two values are compared with
    those of known images, and the lower share counts.

    The first is the likeness of an embedding. With the covariance :math:`\Sigma` within classes, shared by all and
    shrunk, class means :math:`\mu_c` of embeddings x of length 1, of :math:`n_c` samples each, and :math:`\mu` the mean
    over classes, it is

    .. math:: \max_c \cos_\Sigma(x - \mu, \mu_c - \mu)
        - \frac12 \min_c \sqrt{\frac{(x - \mu_c)^\top \Sigma^{-1} (x - \mu_c)}{D (1 + 1 / n_c)}}

    where :math:`\cos_\Sigma` is the cosine after :math:`\Sigma^{-1/2}`, averaged over the embeddings of an image, each
    with means and covariance of its own. The second is the head's highest logit. Heads that compare with class means
    have none, since likeness does that better.

    Before a mini-batch is learned, its images of known classes are scored. Histograms count each score as often as its
    class has had samples, at most 20 times, because the mean of few samples is inaccurate. So a quantile of the lower
    shares tells which share of known images a threshold loses, whatever the order of the stream. Logits grow as the
    head learns, so the weight of those counted so far is halved whenever the number of mini-batches has grown by half.
    The covariance is inverted after 2 mini-batches, and again whenever their number has grown by a tenth.

    Memory: ``12 D**2 + 70,000`` bytes for each embedding and 24 KB, and ``8 D`` bytes for each class and embedding.

    Sources: Lee et al., A Simple Unified Framework for Detecting Out-of-Distribution Samples and Adversarial Attacks,
    2018, for the distance; Vaze et al., Open-Set Recognition: A Good Closed-Set Classifier is All You Need?, 2022, for
    the logit; the combination is this package's own.

    Args:
        dim: length D of an embedding.
        parts: embeddings of an image.

    Attributes:
        sums: a head on each embedding, for its class means and covariance.
        counts: samples of each class, ``(capacity,)`` int64.
        inverses: of the covariances, ``(parts, D, D)`` float32; zero before the first.
        histograms: of likeness, of the highest logit and of the lower share, ``(3, 1024)`` int64.
        judged: numbers of images in them, ``(3,)`` int64.

    Example:
        >>> familiarity = Familiarity(dim=2)
        >>> _ = familiarity.add_rows(2)
        >>> x = torch.tensor([[1.0, 0.1], [0.1, 1.0]]).repeat(20, 1) + torch.arange(40).remainder(3).view(-1, 1) / 30
        >>> for batches, (part, rows) in enumerate(zip(x.split(10), torch.tensor([0, 1]).repeat(4, 5)), start=1):
        ...     familiarity.judge(part.unsqueeze(1), rows)
        ...     familiarity.learn(part.unsqueeze(1), rows, batches)
        >>> known, unknown = familiarity.scores(torch.tensor([[[1.0, 0.1]], [[-1.0, -1.0]]]))
        >>> bool(known > unknown)
        True
    """

    counts: Tensor
    inverses: Tensor
    histograms: Tensor
    judged: Tensor
    sums: Any

    def __init__(self, dim: int, parts: int = 1) -> None:
        super().__init__()
        self.sums = nn.ModuleList(LDAHead(dim) for _ in range(parts))
        self.register_rows("counts", dtype=torch.int64, summed=True)
        self.register_buffer("inverses", torch.zeros(parts, dim, dim, dtype=torch.float32))
        self.register_buffer("histograms", torch.zeros(3, BINS, dtype=torch.int64))
        self.register_buffer("judged", torch.zeros(3, dtype=torch.int64))

    def add_rows(self, count: int) -> slice:
        for head in self.sums:
            head.add_rows(count)
        return super().add_rows(count)

    @torch.no_grad()
    def judge(self, embeddings: Tensor, rows: Tensor, logits: Tensor | None = None) -> None:
        """Counts the scores of ``embeddings (B, parts, D)`` of the classes ``rows (B,)`` before they are learned.

        Args:
            embeddings, rows: the mini-batch.
            logits: the head's highest, ``(B,)``, NaN where it did not know the class; None of a head that has none.
        """
        known = self.counts[rows].clamp(max=ENOUGH) * (self.inverses[0, 0, 0] > 0)
        places = self._places(embeddings, logits)
        both = torch.minimum(*self._shares(places)).where(self.judged[1] >= ENOUGH, torch.nan)
        histograms, judged = [], []
        for histogram, number, part in zip(self.histograms, self.judged, (*places, SHARE.places(both)), strict=True):
            weights = known * ~part.isnan()
            # New tensors, since an undone mini-batch puts the old ones back.
            histograms.append(histogram.index_add(0, part.nan_to_num().long(), weights))
            judged.append(number + (weights > 0).sum())
        self.histograms, self.judged = torch.stack(histograms), torch.stack(judged)

    @torch.no_grad()
    def learn(self, embeddings: Tensor, rows: Tensor, batches: int) -> None:
        """Takes in ``embeddings (B, parts, D)`` of the classes ``rows (B,)``, the last of so many mini-batches."""
        for head, part in zip(self.sums, self._units(embeddings), strict=True):
            head.update(part, rows)
        self.counts = self.counts.index_add(0, rows, torch.ones_like(rows))
        if is_due(batches, GROWTH, FIRST):
            self.inverses = self._inverted()
        if is_due(batches, FADING):
            likeness, logits, lower = self.histograms
            self.histograms = torch.stack([likeness, logits // 2, lower])

    @torch.no_grad()
    def remove(self, embeddings: Tensor, rows: Tensor) -> None:
        """Takes what :meth:`learn` took in out of sums and covariance again; scores that have been counted stay."""
        for head, part in zip(self.sums, self._units(embeddings), strict=True):
            head.remove(part, rows)
        self.counts = self.counts.index_add(0, rows, -torch.ones_like(rows))
        self.inverses = self._inverted() * (self.inverses[0, 0, 0] > 0)

    @torch.no_grad()
    def scores(self, embeddings: Tensor, logits: Tensor | None = None) -> Tensor:
        """How familiar images are.

        Args:
            embeddings: ``(B, parts, D)``.
            logits: the head's highest, ``(B,)``; None of a head that has none.

        Returns:
            The share of known images that looked less familiar in one way or the other, ``(B,)`` float32.
        """
        likeness, logit = self._shares(self._places(embeddings, logits))
        return torch.fmin(likeness, logit.where(self.judged[2] >= ENOUGH, torch.nan))

    def likeness(self, embeddings: Tensor) -> Tensor:
        """Of ``embeddings (B, parts, D)``, ``(B,)`` float32; the higher, the more like something learned."""
        cosines, distances = self.nearest(embeddings)
        return (cosines - DISTANCE * distances).mean(0)

    @torch.no_grad()
    def nearest(self, embeddings: Tensor) -> tuple[Tensor, Tensor]:
        """Highest cosines and least distances of ``embeddings (B, parts, D)``, both ``(parts, B)`` float32."""
        found = []
        for head, inverse, part in zip(self.sums, self.inverses, self._units(embeddings), strict=True):
            seen = (self.used("counts") > 0).float().unsqueeze(1)
            means = head.means()
            centre = (means * seen).sum(0) / seen.sum().clamp(min=1)
            found.append(nearest(part, Whitening(inverse, (means - centre) * seen, centre, self.used("counts"))))
        cosines, distances = map(torch.stack, zip(*found, strict=True))
        return cosines, distances

    def _places(self, embeddings: Tensor, logits: Tensor | None) -> tuple[Tensor, Tensor]:
        """Places of likeness and logits in their histograms, ``(B,)`` each; NaN of logits that are not given."""
        likeness = LIKENESS.places(self.likeness(embeddings))
        return likeness, torch.full_like(likeness, torch.nan) if logits is None else LOGIT.places(logits.asinh())

    def _shares(self, places: tuple[Tensor, Tensor]) -> list[Tensor]:
        """The shares of known images below these places, ``(B,)`` each; NaN for NaN."""
        return [
            share_below(histogram, part.nan_to_num()).where(~part.isnan(), torch.nan)
            for histogram, part in zip(self.histograms[:2], places, strict=True)
        ]

    def _inverted(self) -> Tensor:
        return torch.stack([head.precision() for head in self.sums]).float()

    @staticmethod
    def _units(embeddings: Tensor) -> tuple[Tensor, ...]:
        return F.normalize(embeddings.float(), dim=2).unbind(1)

    def threshold(self, share: float) -> float:
        """The score below which a share of known images lie.

        Raises:
            RuntimeError: too few images have been scored before they were learned to tell.
        """
        judged, needed = int(self.judged[0]), max(ENOUGH, round(1 / share))
        if judged < needed:
            raise RuntimeError(
                f"reject={share}: {judged} images of known classes have been scored before they were learned; "
                f"at least {needed} are needed"
            )
        if int(self.judged[2]) < needed:
            return share
        return SHARE.value(quantile(self.histograms[2], share))


def nearest(x: Tensor, space: Whitening) -> tuple[Tensor, Tensor]:
    """Highest cosine to a class mean, and least distance of one, in the space where the covariance is the identity.

    Args:
        x: ``(B, D)`` float32.
        space: with classes that have had samples, and others.

    Returns:
        ``(B,)`` each; the distance is the root of the mean square over dimensions, over that of a mean of so many
        samples.

    Example:
        >>> means = torch.tensor([[2.0, 0.0], [-2.0, 0.0]])
        >>> space = Whitening(torch.eye(2), means, torch.zeros(2), torch.tensor([1, 1]))
        >>> [value.item() for value in nearest(torch.tensor([[2.0, 2.0]]), space)]  # 45 degrees; sqrt(4 / 2 / 2)
        [0.7071067690849304, 1.0]
    """
    x = x - space.centre
    turned = x @ space.inverse
    dots = turned @ space.means.T
    own, theirs = (turned * x).sum(1, keepdim=True), (space.means @ space.inverse * space.means).sum(1)
    tiny = torch.finfo(x.dtype).tiny
    cosines = dots / (own.clamp(min=0).sqrt() * theirs.clamp(min=0).sqrt()).clamp(min=tiny)
    squares = (own + theirs - 2 * dots).clamp(min=0) / (1 + 1 / space.counts.clamp(min=1))
    unseen = space.counts == 0
    distances = (squares / x.shape[1]).sqrt().masked_fill(unseen, FAR)
    return cosines.masked_fill(unseen, -1).amax(1), distances.amin(1)
