"""What a model says of images that may be of no class it has learned."""

from typing import NamedTuple

from torch import Tensor

UNKNOWN = -(2**63)
"""In the place of a class id: the image is of none of the learned classes."""


class Answers(NamedTuple):
    """What :meth:`avalanche_f2ocl.models.predicting.Predictor.answers` gives.

    Attributes:
        ids: of the k likeliest classes, ``(B, k)`` int64, likeliest first.
        probabilities: of them, if the image is of a known class, ``(B, k)`` float32.
        known: whether the image looks like something that has been learned, ``(B,)`` bool.
        familiarity: by how much, ``(B,)`` float32, see :class:`avalanche_f2ocl.heads.familiarity.Familiarity`.
    """

    ids: Tensor
    probabilities: Tensor
    known: Tensor
    familiarity: Tensor
