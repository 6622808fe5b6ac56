"""Heads by name."""

from dataclasses import replace

from avalanche_f2ocl.config import HeadOptions
from avalanche_f2ocl.heads.ensemble import EnsembleHead
from avalanche_f2ocl.heads.lda import LDAHead
from avalanche_f2ocl.heads.ncm import NCMHead
from avalanche_f2ocl.heads.ridge import RidgeHead
from avalanche_f2ocl.state.class_means import ClassMeans


def make_head(options: HeadOptions, dim: int, seed: int = 0) -> ClassMeans:
    """The head of ``options`` for vectors ``(B, dim)``, one for each half of an ensemble's; ``seed`` draws projections.

    Example:
        >>> make_head(HeadOptions(head="lda"), dim=8).moment.shape
        torch.Size([8, 8])
    """
    if options.head_features == "ensemble":
        single = replace(options, head_features="layers")
        return EnsembleHead([make_head(single, dim // 2, seed) for _ in range(2)])
    if options.head == "lda":
        return LDAHead(dim, options.shrinkage, options.priors)
    if options.head == "ridge":
        return RidgeHead(dim, options.projection, options.ridge, options.priors, seed)
    return NCMHead(dim, options.metric)
