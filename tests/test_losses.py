import math

import pytest
import torch
from pytorch_metric_learning.losses import SupConLoss
from pytorch_metric_learning.reducers import MeanReducer

from avalanche_f2ocl import F2OCLConfig
from avalanche_f2ocl.losses import contrastive_prompt_loss, key_loss


def cosine(a, b):
    dot = sum(float(x) * float(y) for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(float(x) ** 2 for x in a)) / math.sqrt(sum(float(x) ** 2 for x in b))


def naive_loss(z, y, prototypes, counts, temperature, negatives, exclude_self):
    """Eqs. 3-7, term by term."""
    total, B = 0.0, len(z)
    for i in range(B):
        n, n_star = int(counts[y[i]]), sum(int(y[j] == y[i]) for j in range(B))
        alpha, beta = n / (n + n_star), n_star / (n + n_star)
        own = math.exp(cosine(z[i], prototypes[y[i]]) / temperature)
        if negatives == "batch":
            foreign = [prototypes[y[j]] for j in range(B) if y[j] != y[i]]
        else:
            foreign = [prototypes[c] for c in range(len(prototypes)) if c != y[i]]
        gamma1 = sum(math.exp(cosine(z[i], mu) / temperature) for mu in foreign)
        first = alpha * math.log(own / (own + gamma1))

        others = [j for j in range(B) if not (exclude_self and j == i)]
        positives = [j for j in others if y[j] == y[i]]
        denominator = sum(math.exp(cosine(z[i], z[j]) / temperature) for j in others)
        second = 0.0
        for j in positives:
            second += beta / len(positives) * math.log(math.exp(cosine(z[i], z[j]) / temperature) / denominator)
        total += -(first + second)
    return total / B


@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("negatives", ["batch", "all"])
@pytest.mark.parametrize(
    "y", [[0, 1, 0, 3, 3, 0, 1], [2, 2, 2, 2], [4], [0, 1, 2, 3, 4]], ids=["mixed", "one class", "one sample", "alone"]
)
def test_equals_a_loop_over_the_equations(y, negatives, exclude_self, draw):
    z = torch.randn(len(y), 6, dtype=torch.float64, generator=draw)
    prototypes = torch.randn(5, 6, dtype=torch.float64, generator=draw)
    counts, y = torch.tensor([3, 0, 12, 1, 5]), torch.tensor(y)
    loss = contrastive_prompt_loss(z, y, prototypes, counts, 0.2, negatives, exclude_self)
    assert loss.shape == ()
    assert loss.item() == pytest.approx(naive_loss(z, y, prototypes, counts, 0.2, negatives, exclude_self), rel=1e-12)


def test_gradient_by_finite_differences(draw):
    z = torch.randn(5, 4, dtype=torch.float64, generator=draw).requires_grad_()
    prototypes = torch.randn(3, 4, dtype=torch.float64, generator=draw)
    y, counts = torch.tensor([0, 1, 1, 2, 0]), torch.tensor([2, 0, 7])
    for negatives in ("batch", "all"):
        for exclude_self in (False, True):
            assert torch.autograd.gradcheck(
                lambda z, n=negatives, e=exclude_self: contrastive_prompt_loss(z, y, prototypes, counts, 0.2, n, e), z
            )


@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("y", [[0], [1, 1, 1], [0, 1]], ids=["one sample", "one class", "two alone"])
def test_gradient_is_finite_at_the_edges(y, exclude_self, draw):
    z = torch.randn(len(y), 4, generator=draw).requires_grad_()
    loss = contrastive_prompt_loss(
        z, torch.tensor(y), torch.zeros(2, 4), torch.tensor([0, 1]), exclude_self=exclude_self
    )
    loss.backward()
    assert loss.isfinite() and z.grad.isfinite().all()


def test_without_self_and_without_history_it_is_supcon(draw):
    z, y = torch.randn(12, 8, generator=draw), torch.tensor([0, 1, 2, 0, 1, 2, 0, 0, 3, 3, 1, 4])
    ours = contrastive_prompt_loss(z, y, torch.zeros(5, 8), torch.zeros(5, dtype=torch.long), 0.2, exclude_self=True)
    theirs = SupConLoss(temperature=0.2, reducer=MeanReducer())(z, y)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)


def test_floor_with_self_included():
    """Identical positives, orthogonal prototypes without weight: the loss is log of the number of positives."""
    z, y = torch.ones(3, 4), torch.tensor([0, 0, 0])
    loss = contrastive_prompt_loss(z, y, torch.zeros(1, 4), torch.tensor([0]))
    assert loss.item() == pytest.approx(math.log(3))


def test_prototypes_get_no_gradient(draw):
    prototypes = torch.randn(2, 4, generator=draw).requires_grad_()
    z = torch.randn(2, 4, generator=draw).requires_grad_()
    contrastive_prompt_loss(z, torch.tensor([0, 1]), prototypes, torch.tensor([1, 1])).backward()
    assert prototypes.grad is None and z.grad.abs().sum() > 0


def test_unknown_negatives():
    with pytest.raises(ValueError, match="negatives='some'.*'batch', 'all'"):
        contrastive_prompt_loss(
            torch.ones(1, 2), torch.tensor([0]), torch.ones(1, 2), torch.tensor([0]), negatives="some"
        )


def test_key_loss_equals_a_loop_over_equation_9(draw):
    old = torch.randn(3, 5, dtype=torch.float64, generator=draw)
    new = torch.randn(3, 5, dtype=torch.float64, generator=draw)
    q = torch.randn(6, 5, dtype=torch.float64, generator=draw)
    y, counts = torch.tensor([0, 0, 1, 2, 0, 2]), torch.tensor([4, 0, 9])
    expected = 0.0
    for c in range(3):
        n, members = int(counts[c]), [i for i in range(6) if y[i] == c]
        alpha, beta = n / (n + len(members)), len(members) / (n + len(members))
        expected += alpha * (1 - cosine(new[c], old[c]))
        expected += beta * sum(1 - cosine(new[c], q[i]) for i in members)
    assert key_loss(new, old, q, y, counts).item() == pytest.approx(expected, rel=1e-12)


def test_the_temperature_is_the_models_by_default(draw):
    z, prototypes = torch.randn(6, 5, generator=draw), torch.randn(3, 5, generator=draw)
    y, counts = torch.tensor([0, 0, 1, 2, 0, 2]), torch.tensor([4, 2, 9])
    given = contrastive_prompt_loss(z, y, prototypes, counts, temperature=F2OCLConfig().temperature)
    assert contrastive_prompt_loss(z, y, prototypes, counts) == given
