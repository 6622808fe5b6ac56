"""How similar an image is to the learned classes, computed from sums alone, for the answer "none of these"."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from avalanche_f2ocl.heads.calibration import is_due
from avalanche_f2ocl.heads.lda import LDAHead
from avalanche_f2ocl.state.replaced import ReplacedRows

DISTANCE = 0.5
"""Weight of the distance; the cosine has weight 1."""
FIRST, GROWTH = 2, 1.1
"""Number of mini-batches before the covariance is first inverted, and the factor by which it grows each time."""
LOWEST, HIGHEST, BINS = -7.0, 1.0, 1024
"""Range of the histogram of scores, and its number of bins."""
ENOUGH = 20
"""Smallest number of scores from which a quantile is taken."""


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
    r"""Scores how similar images are to the learned classes, and the distribution of scores of known classes.

    With the covariance :math:`\Sigma` within classes, shared by all and shrunk, class means :math:`\mu_c` of embeddings
    x of length 1, of :math:`n_c` samples each, and :math:`\mu` the mean over classes, the score is

    .. math:: \max_c \cos_\Sigma(x - \mu, \mu_c - \mu)
        - \frac12 \min_c \sqrt{\frac{(x - \mu_c)^\top \Sigma^{-1} (x - \mu_c)}{D (1 + 1 / n_c)}}

    where :math:`\cos_\Sigma` is the cosine after :math:`\Sigma^{-1/2}`: an unknown thing lies either in no class's
    direction or far from all of them. Several embeddings of an image have their cosines averaged; the distance is the
    first one's.

    Before a mini-batch is learned, its images of known classes are scored. A histogram counts each score as often as
    its class has had samples, because the mean of few samples is inaccurate. So a quantile of the scores tells which
    share of known images a threshold loses, whatever the order of the stream. The covariance is inverted after 2
    mini-batches, and again whenever their number has grown by a tenth.

    Memory: ``12 D**2 + 70,000`` bytes for each embedding and 8 KB, and ``8 D`` bytes for each class and embedding.

    Sources: Lee et al., A Simple Unified Framework for Detecting Out-of-Distribution Samples and Adversarial Attacks,
    2018, for the distance; the sum of both is this package's own.

    Args:
        dim: length D of an embedding.
        parts: embeddings of an image.

    Attributes:
        distance: weight of the distance.
        sums: a head on each embedding, for its class means and covariance.
        counts: samples of each class, ``(capacity,)`` int64.
        inverses: of the covariances, ``(parts, D, D)`` float32; zero before the first.
        histogram: of scores, ``(1024,)`` int64.
        judged: their number, int64.

    Example:
        >>> familiarity = Familiarity(dim=2)
        >>> _ = familiarity.add_rows(2)
        >>> x = torch.tensor([[1.0, 0.1], [0.1, 1.0]]).repeat(5, 1) + torch.arange(10).remainder(3).view(-1, 1) / 30
        >>> familiarity.learn(x.unsqueeze(1), torch.tensor([0, 1] * 5), batches=2)
        >>> known, unknown = familiarity.scores(torch.tensor([[[1.0, 0.1]], [[-1.0, -1.0]]]))
        >>> bool(known > unknown)
        True
    """

    counts: Tensor
    inverses: Tensor
    histogram: Tensor
    judged: Tensor
    sums: Any

    def __init__(self, dim: int, parts: int = 1) -> None:
        super().__init__()
        self.distance = DISTANCE
        self.sums = nn.ModuleList(LDAHead(dim) for _ in range(parts))
        self.register_rows("counts", dtype=torch.int64, summed=True)
        self.register_buffer("inverses", torch.zeros(parts, dim, dim, dtype=torch.float32))
        self.register_buffer("histogram", torch.zeros(BINS, dtype=torch.int64))
        self.register_buffer("judged", torch.zeros((), dtype=torch.int64))

    def add_rows(self, count: int) -> slice:
        for head in self.sums:
            head.add_rows(count)
        return super().add_rows(count)

    @torch.no_grad()
    def judge(self, embeddings: Tensor, rows: Tensor) -> None:
        """Counts the scores of ``embeddings (B, parts, D)`` of the classes ``rows (B,)`` before they are learned."""
        counts = self.counts[rows] * (self.inverses[0, 0, 0] > 0)
        places = ((self.scores(embeddings) - LOWEST) / (HIGHEST - LOWEST) * BINS).long().clamp(0, BINS - 1)
        # A new tensor, since an undone mini-batch puts the old one back.
        self.histogram = self.histogram.index_add(0, places, counts)
        self.judged = self.judged + (counts > 0).sum()

    @torch.no_grad()
    def learn(self, embeddings: Tensor, rows: Tensor, batches: int) -> None:
        """Takes in ``embeddings (B, parts, D)`` of the classes ``rows (B,)``, the last of so many mini-batches."""
        for head, part in zip(self.sums, self._units(embeddings), strict=True):
            head.update(part, rows)
        self.counts = self.counts.index_add(0, rows, torch.ones_like(rows))
        if is_due(batches, GROWTH, FIRST):
            self.inverses = self._inverted()

    @torch.no_grad()
    def remove(self, embeddings: Tensor, rows: Tensor) -> None:
        """Takes what :meth:`learn` took in out of sums and covariance again; scores that have been counted stay."""
        for head, part in zip(self.sums, self._units(embeddings), strict=True):
            head.remove(part, rows)
        self.counts = self.counts.index_add(0, rows, -torch.ones_like(rows))
        self.inverses = self._inverted() * (self.inverses[0, 0, 0] > 0)

    @torch.no_grad()
    def scores(self, embeddings: Tensor) -> Tensor:
        """Of ``embeddings (B, parts, D)``, ``(B,)`` float32; the higher, the more like something learned."""
        found = []
        for head, inverse, part in zip(self.sums, self.inverses, self._units(embeddings), strict=True):
            seen = (self.used("counts") > 0).float().unsqueeze(1)
            means = head.means()
            centre = (means * seen).sum(0) / seen.sum().clamp(min=1)
            found.append(nearest(part, Whitening(inverse, (means - centre) * seen, centre, self.used("counts"))))
        cosines, distances = map(torch.stack, zip(*found, strict=True))
        return cosines.mean(0) - self.distance * distances[0]

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
        judged, needed = int(self.judged), max(ENOUGH, round(1 / share))
        if judged < needed:
            raise RuntimeError(
                f"reject={share}: {judged} images of known classes have been scored before they were learned; "
                f"at least {needed} are needed"
            )
        below = self.histogram.double().cumsum(0) / self.histogram.sum()
        place = int((below > share).double().argmax())
        before = float(below[place - 1]) if place else 0.0
        within = (share - before) / max(float(below[place]) - before, 1e-12)
        return LOWEST + (place + within) * (HIGHEST - LOWEST) / BINS


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
    distances = (squares / x.shape[1]).sqrt().masked_fill(unseen, -2 * LOWEST)
    return cosines.masked_fill(unseen, -1).amax(1), distances.amin(1)
