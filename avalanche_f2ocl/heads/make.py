"""Heads by name."""

import inspect
from collections.abc import Sequence
from typing import Any

from avalanche_f2ocl.config import HeadOptions
from avalanche_f2ocl.extensions import check_made, found
from avalanche_f2ocl.heads.either import EitherHead
from avalanche_f2ocl.heads.ensemble import EnsembleHead
from avalanche_f2ocl.heads.head import SumHead
from avalanche_f2ocl.heads.lda import LDAHead
from avalanche_f2ocl.heads.ncm import NCMHead
from avalanche_f2ocl.heads.ridge import RidgeHead
from avalanche_f2ocl.state.rows import ClassRows


def make_head(options: HeadOptions, widths: Sequence[int], seed: int = 0) -> SumHead:
    """The head of ``options`` for vectors of as many features, or an ensemble where there are several widths.

    Args:
        options: which head.
        widths: features of each, see :class:`avalanche_f2ocl.heads.features.FeaturePlan`.
        seed: draws projections.

    Raises:
        TypeError: a user's class has made something that is no head.

    Example:
        >>> make_head(HeadOptions(head="lda"), [8]).moment.shape
        torch.Size([8, 8])
    """
    heads = [_single(options, width, seed) for width in widths]
    if options.head_features == "either":
        return EitherHead(heads)
    return heads[0] if len(heads) == 1 else EnsembleHead(heads, options.vote)


def _single(options: HeadOptions, dim: int, seed: int) -> SumHead:
    if options.head == "lda":
        return LDAHead(dim, options.shrinkage, options.priors)
    if options.head == "ridge":
        return RidgeHead(dim, options.projection, options.ridge, options.priors, seed)
    if options.head == "ncm":
        return NCMHead(dim, options.metric)
    factory = found("head", options.head)
    takes_seed = "seed" in inspect.signature(factory).parameters
    head: Any = factory(dim, seed=seed) if takes_seed else factory(dim)
    check_made("head", options.head, head, ClassRows, ("counts", "update", "prepare", "means", "logits"))
    return head
