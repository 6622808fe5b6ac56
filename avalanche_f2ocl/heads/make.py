"""Heads by name."""

from avalanche_f2ocl.class_means import ClassMeans
from avalanche_f2ocl.config import HeadOptions
from avalanche_f2ocl.heads.lda import LDAHead
from avalanche_f2ocl.heads.ncm import NCMHead
from avalanche_f2ocl.heads.ridge import RidgeHead


def make_head(options: HeadOptions, dim: int, seed: int = 0) -> ClassMeans:
    """The head of ``options`` for vectors ``(B, dim)``; ``seed`` draws its random projection.

    Example:
        >>> make_head(HeadOptions(head="lda"), dim=8).moment.shape
        torch.Size([8, 8])
    """
    if options.head == "lda":
        return LDAHead(dim, options.shrinkage, options.priors)
    if options.head == "ridge":
        return RidgeHead(dim, options.projection, options.ridge, seed)
    return NCMHead(dim, options.metric)
