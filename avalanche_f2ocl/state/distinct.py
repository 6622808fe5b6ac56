"""Estimates how many different images a stream has had, without keeping any of them."""

from collections.abc import Callable
from functools import lru_cache, partial

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.state.rows import Undoable, move_only

BITS = 48
"""Bits of a code: with fewer, different images of a class may share a code; with more, noise separates copies."""
THUMBNAIL = 8
"""Side of the thumbnail in pixels."""


class DistinctCount(Undoable):
    """Estimates the number of different codes by linear counting.

    Codes are hashed into buckets, and the share of empty buckets shows how many different codes there were. Up to
    150,000 the estimate is within 5 %; beyond that it does not grow any more.

    Source: Whang, Vander-Zanden and Taylor, A Linear-Time Probabilistic Counting Algorithm for Database Applications,
    1990, Eq. 1.

    Attributes:
        buckets: number of codes in each bucket, ``(16384,)`` int32.

    Example:
        >>> count = DistinctCount()
        >>> for _ in range(3):
        ...     count.add(torch.arange(100))
        >>> round(count.estimate().item())
        100
    """

    buckets: Tensor
    LENGTH_BITS = 14

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("buckets", torch.zeros(2**self.LENGTH_BITS, dtype=torch.int32))
        self._changes: list[tuple[Tensor, int]] = []

    @torch.no_grad()
    def add(self, codes: Tensor) -> None:
        """Counts ``codes (B,)`` int64."""
        self._change(self._places(codes), 1)

    @torch.no_grad()
    def remove(self, codes: Tensor) -> None:
        """Takes out ``codes (B,)`` int64 that were counted.

        Raises:
            ValueError: some of them were not counted; nothing has changed.
        """
        places = self._places(codes)
        if missing := int((torch.bincount(places, minlength=len(self.buckets)) - self.buckets).clamp(min=0).sum()):
            raise ValueError(f"at least {missing} of these {len(codes)} images are not among those that were learned")
        self._change(places, -1)

    def _places(self, codes: Tensor) -> Tensor:
        # Fibonacci hashing: the product's highest bits depend on all bits of the code.
        return (codes * -7046029254386353131 >> (64 - self.LENGTH_BITS)) & (len(self.buckets) - 1)

    def total(self) -> Tensor:
        """Number of codes so far, including copies; int64."""
        return self.buckets.sum()

    def estimate(self) -> Tensor:
        """Number of different codes so far, a float64 scalar; at most :meth:`total`."""
        empty = (self.buckets == 0).sum().clamp(min=1).double()
        return torch.minimum(-len(self.buckets) * (empty / len(self.buckets)).log(), self.total())

    def clear(self) -> None:
        """Resets all counts."""
        self.buckets.zero_()

    def _change(self, places: Tensor, by: int) -> None:
        self.buckets.index_add_(0, places, torch.full_like(places, by, dtype=torch.int32))
        if self.in_block:
            self._changes.append((places, by))

    def undo_growth(self) -> Callable[[], None]:
        return partial(self._take_back, self._changes)

    def begin_block(self) -> None:
        self._changes.clear()

    def end_block(self, keep: bool) -> None:
        if keep:  # otherwise the changes are undone
            self._changes.clear()

    def _take_back(self, changes: list[tuple[Tensor, int]]) -> None:
        for places, by in changes:
            self._change(places, -by)

    def _apply(self, fn, recurse=True):
        return super()._apply(move_only(fn), recurse)


def image_codes(images: Tensor) -> Tensor:
    """A code for each image. Copies share it, and so do most versions with a little noise; different images rarely do.

    Each bit says on which side of a random hyperplane the image's thumbnail lies, after subtracting its mean, so that
    brightness and contrast do not matter.

    Source: Charikar, Similarity Estimation Techniques from Rounding Algorithms, 2002.

    Args:
        images: ``(B, C, H, W)`` of any range of values and any size.

    Returns:
        ``(B,)`` int64 of ``BITS`` bits.

    Example:
        >>> images = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
        >>> codes = image_codes(torch.cat([images, images.flip(0)]))
        >>> (codes[0] == codes[3]).item(), (codes[0] == codes[1]).item()
        (True, False)
    """
    thumbnails = F.adaptive_avg_pool2d(images.float(), THUMBNAIL).flatten(1)
    thumbnails = thumbnails - thumbnails.mean(1, keepdim=True)
    planes, powers = _planes(thumbnails.shape[1], images.device)
    return ((thumbnails @ planes > 0) * powers).sum(1)


@lru_cache(maxsize=8)
def _planes(features: int, device: torch.device) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    planes = torch.randn(features, BITS, generator=generator)
    return planes.to(device, non_blocking=True), (2 ** torch.arange(BITS)).to(device, non_blocking=True)
