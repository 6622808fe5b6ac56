"""Histograms of values, from which no value can be told, and the share of values below another."""

from typing import NamedTuple

import torch
from torch import Tensor

BINS = 1024


class Range(NamedTuple):
    """The range of a histogram of :data:`BINS` bins; values outside count as its ends."""

    lowest: float
    highest: float

    def places(self, values: Tensor) -> Tensor:
        """The bins of ``values`` with fractions, float64 from 0 to just below the number of bins.

        Example:
            >>> Range(-1.0, 1.0).places(torch.tensor([-3.0, 0.0])).tolist()
            [0.0, 512.0]
        """
        places = (values.double() - self.lowest) / (self.highest - self.lowest) * BINS
        return places.clamp(0, BINS * (1 - 1e-12))

    def value(self, place: float) -> float:
        """The value at a place."""
        return self.lowest + place * (self.highest - self.lowest) / BINS


def share_below(histogram: Tensor, places: Tensor) -> Tensor:
    """The share of a histogram's weight below places, evenly distributed in each bin.

    Args:
        histogram: ``(BINS,)`` int64, not all zero.
        places: ``(B,)``, see :meth:`Range.places`.

    Returns:
        ``(B,)`` float32, from 0 to 1.

    Example:
        >>> histogram = torch.zeros(BINS, dtype=torch.int64)
        >>> histogram[2], histogram[5] = 3, 1
        >>> share_below(histogram, torch.tensor([1.0, 2.5, 9.0])).tolist()
        [0.0, 0.375, 1.0]
    """
    below = torch.cat([histogram.new_zeros(1), histogram.cumsum(0)]).double() / histogram.sum()
    bins = places.long()
    return torch.lerp(below[bins], below[bins + 1], places.double() - bins).float()


def quantile(histogram: Tensor, share: float) -> float:
    """The place below which a share of a histogram's weight lies, the inverse of :func:`share_below`.

    Example:
        >>> histogram = torch.zeros(BINS, dtype=torch.int64)
        >>> histogram[2], histogram[5] = 3, 1
        >>> quantile(histogram, 0.375)
        2.5
    """
    below = histogram.double().cumsum(0) / histogram.sum()
    place = int((below > share).double().argmax())
    before = float(below[place - 1]) if place else 0.0
    return place + (share - before) / max(float(below[place]) - before, 1e-12)
