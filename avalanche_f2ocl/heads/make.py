"""Heads by name."""

import inspect
from collections.abc import Sequence
from typing import Any

from avalanche_f2ocl.extensions import check_made, found
from avalanche_f2ocl.heads.either import EitherHead
from avalanche_f2ocl.heads.ensemble import EnsembleHead
from avalanche_f2ocl.heads.fecam import FeCAMHead
from avalanche_f2ocl.heads.head import SumHead
from avalanche_f2ocl.heads.held_out import HeldOutRidgeHead, TaskRidgeHead
from avalanche_f2ocl.heads.lda import LDAHead
from avalanche_f2ocl.heads.ncm import NCMHead
from avalanche_f2ocl.heads.ridge import RidgeHead
from avalanche_f2ocl.heads.slda import KLDAHead, SLDAHead
from avalanche_f2ocl.options import HeadOptions
from avalanche_f2ocl.state.rows import ClassRows

RIDGES: dict[str, type[RidgeHead]] = {"gcv": RidgeHead, "past": HeldOutRidgeHead, "task": TaskRidgeHead}
"""Ridge heads by the rule that chooses the penalty."""


def make_head(options: HeadOptions, widths: Sequence[int], seed: int = 0) -> SumHead:
    """Makes the head that ``options`` describe, or an ensemble of such heads if there are several widths.

    Args:
        options: the options of the head.
        widths: number of features of each head, see :class:`avalanche_f2ocl.heads.features.FeaturePlan`.
        seed: seed of projections.

    Raises:
        TypeError: a user's class made something that is no head.

    Example:
        >>> make_head(HeadOptions(head="lda"), [8]).moment.shape
        torch.Size([8, 8])
    """
    heads = [_single(options, width, seed) for width in widths]
    if options.head_features == "either":
        return EitherHead(heads)
    return heads[0] if len(heads) == 1 else EnsembleHead(heads, options.vote)


def _single(options: HeadOptions, dim: int, seed: int) -> SumHead:
    features: Any = dict(
        projection=options.projection, seed=seed, random_features=options.random_features, gamma=options.gamma
    )
    match options.head:
        case "lda":
            return LDAHead(dim, options.shrinkage, options.priors, **features)
        case "slda":
            return SLDAHead(dim, options.shrinkage)
        case "klda":
            return KLDAHead(dim, **features)
        case "fecam":
            return FeCAMHead(dim, options.shrinkage)
        case "ridge":
            return RIDGES[options.penalty](dim, ridge=options.ridge, priors=options.priors, **features)
        case "ncm":
            return NCMHead(dim, options.metric)
    factory = found("head", options.head)
    takes_seed = "seed" in inspect.signature(factory).parameters
    head: Any = factory(dim, seed=seed) if takes_seed else factory(dim)
    check_made("head", options.head, head, ClassRows, ("counts", "update", "prepare", "means", "logits"))
    return head
