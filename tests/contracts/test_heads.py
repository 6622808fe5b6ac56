"""What models expect of every head; a new one is added to HEADS."""

import pytest

from avalanche_f2ocl.heads import (
    EitherHead,
    EnsembleHead,
    FeCAMHead,
    HeldOutRidgeHead,
    KLDAHead,
    LDAHead,
    NCMHead,
    RidgeHead,
    SLDAHead,
    TaskRidgeHead,
)
from avalanche_f2ocl.testing import HEAD_CHECKS

HEADS = {
    "ncm-cosine": lambda dim: NCMHead(dim, "cosine"),
    "ncm-euclidean": lambda dim: NCMHead(dim, "euclidean"),
    "lda": LDAHead,
    "lda-counts": lambda dim: LDAHead(dim, shrinkage=0.1, priors="counts"),
    "ridge": lambda dim: RidgeHead(dim, projection=0),
    "ridge-fixed": lambda dim: RidgeHead(dim, projection=0, ridge=1.0),
    "ensemble": lambda dim: EnsembleHead([LDAHead(dim // 2), RidgeHead(dim - dim // 2, projection=0)]),
    "either": lambda dim: EitherHead([NCMHead(1), NCMHead(dim - 1, "euclidean")]),
    "ridge-projected": lambda dim: RidgeHead(dim, projection=40),
    "ridge-sigmoid": lambda dim: RidgeHead(dim, projection=40, random_features="uniform-sigmoid"),
    "lda-fourier": lambda dim: LDAHead(dim, projection=40, random_features="fourier", gamma=0.02),
    "ranpac": lambda dim: HeldOutRidgeHead(dim, projection=40, priors="counts"),
    "ranpac-task": lambda dim: TaskRidgeHead(dim, projection=40, priors="counts"),
    "slda": SLDAHead,
    "klda": lambda dim: KLDAHead(dim, projection=40, gamma=0.02),
    "fecam": FeCAMHead,
}
ORDERED = {"slda", "ranpac", "ranpac-task"}
"""Whose equations take one sample after the other, or choose the penalty by each fifth sample."""


@pytest.mark.parametrize("check", HEAD_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", HEADS)
def test_contract(name, check):
    if name in ORDERED and check.__name__ == "does_not_depend_on_the_order":
        pytest.skip("an exception, see ORDERED")
    check(HEADS[name])
