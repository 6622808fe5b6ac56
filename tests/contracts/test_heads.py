"""What a strategy may expect of every head; a new one is added to HEADS."""

import pytest
import torch

from avalanche_f2ocl.heads import (
    MASKED_LOGIT,
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
ORDERED = {"slda"}
"""Whose equations take one sample after the other; their cut into mini-batches makes no difference."""


@pytest.fixture(params=HEADS)
def make(request):
    return HEADS[request.param]


@pytest.fixture
def blobs(draw):
    """Three well separated classes in 6 dimensions, z (90, 6) and rows (90,)."""
    rows = torch.arange(90) % 3
    return torch.eye(6)[rows] * 5 + torch.randn(90, 6, generator=draw), rows


def fitted(make, z, rows, size=10):
    head = make(z.shape[1])
    head.add_rows(3)
    for part in torch.arange(len(z)).split(size):
        head.update(z[part], rows[part])
    return head


def test_learns_separated_classes(make, blobs):
    z, rows = blobs
    assert (fitted(make, z, rows).logits(z).argmax(1) == rows).float().mean() > 0.95


def test_does_not_depend_on_order_or_batches(request, make, blobs, draw):
    z, rows = blobs
    ordered = request.node.callspec.params["make"] in ORDERED
    order = torch.arange(90) if ordered else torch.randperm(90, generator=draw)
    one, other = fitted(make, z, rows), fitted(make, z[order], rows[order], size=7)
    torch.testing.assert_close(one.logits(z), other.logits(z), rtol=1e-5, atol=1e-5)


def test_scores_each_sample_by_itself(make, blobs):
    z, rows = blobs
    head = fitted(make, z, rows)
    torch.testing.assert_close(torch.cat([head.logits(one) for one in z.split(1)]), head.logits(z))


def test_has_prototypes(make, blobs):
    z, rows = blobs
    head = fitted(make, z, rows)
    torch.testing.assert_close(head.means()[1], z[rows == 1].mean(0))
    torch.testing.assert_close(head.means(torch.tensor([2])), z[rows == 2].mean(0, keepdim=True))


def test_growing_changes_no_score_and_masks_the_new_class(make, blobs):
    z, rows = blobs
    head = fitted(make, z, rows)
    before = head.logits(z)
    head.add_rows(2)
    after = head.logits(z)
    # Not bit for bit: some processors round products with five columns otherwise than with three.
    torch.testing.assert_close(after[:, :3], before, rtol=1e-5, atol=1e-6)
    assert (after[:, 3:] == MASKED_LOGIT).all()


def test_no_class_and_no_sample(make):
    head = make(6)
    assert head.logits(torch.ones(2, 6)).shape == (2, 0)
    head.add_rows(1)
    assert head.logits(torch.ones(2, 6)).tolist() == [[MASKED_LOGIT]] * 2


def test_state_dict_restores_the_scores(make, blobs):
    z, rows = blobs
    head, other = fitted(make, z, rows), make(6)
    other.load_state_dict(head.state_dict())
    assert torch.equal(other.logits(z), head.logits(z))
