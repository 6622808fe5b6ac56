"""A model's answer about images that may show no class it has learned."""

from typing import NamedTuple

from torch import Tensor

UNKNOWN = -(2**63)
"""Takes the place of a class id if an image is of none of the learned classes."""


class Answers(NamedTuple):
    """The result of :meth:`avalanche_f2ocl.models.predicting.Predictor.answers`.

    Attributes:
        ids: class ids of the k likeliest classes, ``(B, k)`` int64, likeliest first.
        probabilities: probabilities of these classes, provided that the image is of a known class, ``(B, k)`` float32.
        known: whether the image looks like something that has been learned, ``(B,)`` bool.
        familiarity: the share of known images that looked less like it, ``(B,)`` float32 in [0, 1], see
            :class:`avalanche_f2ocl.heads.familiarity.Familiarity`.
    """

    ids: Tensor
    probabilities: Tensor
    known: Tensor
    familiarity: Tensor
