"""Classifiers on embeddings, learned by streaming sums.

A head is a :class:`avalanche_f2ocl.state.class_means.ClassMeans` with

- ``add_rows(count)``, which makes room for new classes,
- ``update(vectors, rows)`` with ``vectors (B, F)`` and ``rows (B,)``, called once per mini-batch,
- ``logits(vectors) -> (B, C)``, where higher is nearer, and :data:`MASKED_LOGIT` stands for classes without a sample.
"""

from avalanche_f2ocl.heads.either import EitherHead
from avalanche_f2ocl.heads.ensemble import EnsembleHead
from avalanche_f2ocl.heads.fecam import FeCAMHead
from avalanche_f2ocl.heads.held_out import HeldOutRidgeHead, TaskRidgeHead
from avalanche_f2ocl.heads.lda import LDAHead
from avalanche_f2ocl.heads.ncm import NCMHead
from avalanche_f2ocl.heads.ridge import RidgeHead
from avalanche_f2ocl.heads.slda import KLDAHead, SLDAHead
from avalanche_f2ocl.state.class_means import MASKED_LOGIT

__all__ = [
    "MASKED_LOGIT",
    "EitherHead",
    "EnsembleHead",
    "FeCAMHead",
    "HeldOutRidgeHead",
    "KLDAHead",
    "LDAHead",
    "NCMHead",
    "RidgeHead",
    "SLDAHead",
    "TaskRidgeHead",
]
