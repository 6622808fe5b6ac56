import torch
from torch.nn import functional as F

from avalanche_f2ocl.baselines.mvp_losses import adaptive_scale, contrastive_key_loss, gradient_similarity


def test_gradients_by_autograd(draw):
    z, gate = torch.randn(6, 5, generator=draw), torch.rand(6, 4, generator=draw) * 2
    weight = torch.randn(4, 5, generator=draw, requires_grad=True)
    targets = torch.tensor([0, 1, 1, 3, 0, 1])
    losses = F.cross_entropy(z @ weight.T * gate, targets, reduction="none")
    (batch,) = torch.autograd.grad(losses.mean(), weight, retain_graph=True)
    expected = []
    for i, target in enumerate(targets.tolist()):
        (own,) = torch.autograd.grad(losses[i], weight, retain_graph=True)
        expected.append(F.cosine_similarity(own[target], batch[target], dim=0))
    ours = gradient_similarity(z, (z @ weight.T * gate).detach(), gate, targets)
    torch.testing.assert_close(ours, torch.stack(expected))


def test_contrastive_loss_by_a_loop(draw):
    queries, keys = torch.randn(3, 5, generator=draw), torch.randn(4, 5, generator=draw)
    counts, rows = torch.tensor([0, 7, 2, 0]), torch.tensor([1, 1, 3])
    near, far = 0.0, 0.0
    for query, row in zip(queries, rows.tolist(), strict=True):
        mass = counts[row] + 1
        near += torch.exp((1 - F.cosine_similarity(query, keys[row], dim=0)) / mass) / 3
        for other in keys:
            far += torch.exp((1 - F.cosine_similarity(keys[row], other, dim=0)) / mass) / 12
    similarity = F.cosine_similarity(queries, keys[rows], dim=1).unsqueeze(1)
    expected = -torch.log(far / (near + far) + 1e-6)
    torch.testing.assert_close(contrastive_key_loss(similarity, rows, keys, counts), expected)


def test_scale_of_a_fitting_an_unrelated_and_an_opposite_weight():
    z = torch.tensor([[1.0, 0.0]] * 3)
    weight = torch.tensor([[2.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    torch.testing.assert_close(adaptive_scale(z, weight, margin=0.5), torch.tensor([[0.5], [1.5], [2.5]]))
