"""Heads by name."""

from avalanche_f2ocl.config import HeadOptions
from avalanche_f2ocl.heads.ensemble import EnsembleHead
from avalanche_f2ocl.heads.head import SumHead
from avalanche_f2ocl.heads.lda import LDAHead
from avalanche_f2ocl.heads.ncm import NCMHead
from avalanche_f2ocl.heads.ridge import RidgeHead


def make_head(options: HeadOptions, dim: int, seed: int = 0) -> SumHead:
    """The head of ``options`` for vectors ``(B, dim)``, one for each half of an ensemble's; ``seed`` draws projections.

    Example:
        >>> make_head(HeadOptions(head="lda"), dim=8).moment.shape
        torch.Size([8, 8])
    """
    if options.head_features == "ensemble":
        return EnsembleHead([_single(options, dim // 2, seed) for _ in range(2)])
    return _single(options, dim, seed)


def _single(options: HeadOptions, dim: int, seed: int) -> NCMHead | LDAHead | RidgeHead:
    if options.head == "lda":
        return LDAHead(dim, options.shrinkage, options.priors)
    if options.head == "ridge":
        return RidgeHead(dim, options.projection, options.ridge, options.priors, seed)
    return NCMHead(dim, options.metric)
