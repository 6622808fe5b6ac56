"""What models expect of every head; a new one is added to HEADS."""

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
from avalanche_f2ocl.state.rows import ClassRows, Undoable
from avalanche_f2ocl.state.undo import Undo
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


def pictures(rows, draw):
    return torch.randint(0, 256, (len(rows), 1, 8, 8), dtype=torch.uint8, generator=draw)


def taught(head, z, rows, images, ask=True):
    """Mini-batches as a model gives them: judged, learned, and a prediction in between where it is asked for."""
    for part in torch.arange(len(z)).split(10):
        if isinstance(head, EitherHead):
            head.judge(z[part], rows[part])
        head.update(z[part], rows[part], images[part])
        if ask:
            head.logits(z[:2])
    return head


def test_what_is_taken_out_was_never_seen(make, blobs, draw):
    """Scores, evidence, weights and counts are those of a head that learned the rest alone; both go on alike."""
    z, rows = blobs
    if not getattr(make(6), "removes", True):
        head = fitted(make, z, rows)
        before = {name: tensor.clone() for name, tensor in head.state_dict().items()}
        with pytest.raises(TypeError, match="depends on the order of its samples"):
            head.remove(z[:10], rows[:10], pictures(rows[:10], draw))
        assert all(torch.equal(head.state_dict()[name], tensor) for name, tensor in before.items())
        return
    rows = torch.where(torch.arange(90) < 60, rows % 2, rows)  # the last class comes and goes
    images = pictures(rows, draw)
    head, other = make(6), make(6)
    for one in (head, other):
        one.add_rows(3)
    before = taught(head, z, rows, images).logits(z)
    taught(other, z[:60], rows[:60], images[:60], ask=False)
    for part in reversed(torch.arange(60, 90).split(10)):
        head.remove(z[part], rows[part], images[part])
    assert (before - other.logits(z)).abs().max() > 1e-3
    assert (head.logits(z)[:, 2] == MASKED_LOGIT).all()
    compare(head, other, z)
    for one in (head, other):
        taught(one, z[60:], rows[60:], images[60:])
    compare(head, other, z)


def compare(head, other, z):
    torch.testing.assert_close(head.logits(z), other.logits(z), rtol=1e-4, atol=1e-5)
    assert torch.equal(head.used("counts"), other.used("counts"))
    for name, tensor in other.state_dict().items():
        if not tensor.is_floating_point():
            assert torch.equal(head.state_dict()[name], tensor), name
    for ask in ("weights", "evidence"):
        if hasattr(head, ask):
            torch.testing.assert_close(getattr(head, ask)(), getattr(other, ask)())


def test_what_is_taken_out_comes_back_when_the_block_fails(make, blobs, draw):
    z, rows = blobs
    images, head = pictures(rows, draw), make(6)
    if not getattr(head, "removes", True):
        return
    head.add_rows(3)
    taught(head, z, rows, images)
    parts = [part for part in head.modules() if isinstance(part, Undoable)]
    before = {name: tensor.clone() for name, tensor in head.state_dict().items() if "solution" not in name}
    with pytest.raises(OSError), Undo(parts) as undo:
        undo.save_rows(torch.arange(3))
        head.remove(z[:10], rows[:10], images[:10])
        raise OSError
    for name, tensor in before.items():
        assert torch.equal(head.state_dict()[name], tensor), name
    with Undo(parts) as undo:
        undo.save_rows(torch.arange(3))
        head.remove(z[:10], rows[:10], images[:10])
        inside = head.logits(z)
    torch.testing.assert_close(head.logits(z), inside)
    assert head.used("counts").sum() == 80


def test_two_classes_become_one(make, blobs):
    z, rows = blobs
    if isinstance(make(6), SLDAHead):
        return  # whose covariance is around means of the time
    head, other = fitted(make, z, rows), make(6)
    other.add_rows(2)
    for part in torch.arange(90).split(10):
        other.update(z[part], rows[part].clamp(max=1))
    head.logits(z)
    for part in head.modules():
        if isinstance(part, ClassRows):
            part.merge_row(2, 1)
    for part in head.modules():
        if isinstance(part, ClassRows):
            part.remove_row(2)
    torch.testing.assert_close(head.logits(z), other.logits(z), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(head.means(), other.means())
    assert head.used("counts").tolist() == [30, 60]
