import pytest
import torch
from torch.nn import functional as F

from avalanche_f2ocl.heads import MASKED_LOGIT
from avalanche_f2ocl.state.keys import GradientKeys, MeanKeys, key_scores

IDS = torch.tensor([3, -1, 12])


def test_mean_keys_are_running_means(draw):
    keys, q, rows = MeanKeys(4), torch.randn(9, 4, generator=draw), torch.tensor([0, 1, 0, 2, 2, 0, 1, 0, 0])
    keys.add_classes(IDS)
    for part in torch.arange(9).split(4):
        keys.update(q[part], rows[part])
    for row in range(3):
        torch.testing.assert_close(keys.vectors()[row], q[rows == row].mean(0))


def test_gradient_keys_take_the_derivative_of_equation_9(draw):
    """d/dk of 1 - cos(k, q) is -(q/|q| - cos k/|k|)/|k|; the first term of the loss has no gradient at k' = k."""
    keys = GradientKeys(4, lr=0.5)
    keys.add_classes(IDS)
    old, q = keys.vectors().double().clone(), torch.randn(3, 4, generator=draw)
    rows, counts = torch.tensor([2, 0, 2]), torch.tensor([6, 1])
    class_rows, local = torch.unique(rows, return_inverse=True)
    keys.update(q, rows, class_rows, local, counts)
    expected = old.clone()
    for row, n, members in ((0, 6, [1]), (2, 1, [0, 2])):
        beta, k = len(members) / (n + len(members)), old[row]
        for i in members:
            x = q[i].double()
            gradient = -(x / x.norm() - F.cosine_similarity(k, x, dim=0) * k / k.norm()) / k.norm()
            expected[row] -= 0.5 * beta * gradient
    torch.testing.assert_close(keys.vectors(), expected.float(), rtol=1e-4, atol=1e-5)
    assert torch.equal(keys.vectors()[1], old[1].float())


def test_gradient_keys_start_as_a_function_of_seed_and_class():
    def start(seed, ids):
        keys = GradientKeys(6, seed=seed)
        keys.add_classes(torch.tensor(ids))
        return keys.vectors()

    assert torch.equal(start(0, [1, 2])[1], start(0, [2])[0])
    assert not torch.equal(start(0, [2]), start(1, [2]))
    wide = start(0, list(range(200)))
    assert -1 <= wide.min() < -0.99 and 0.99 < wide.max() < 1


@pytest.mark.parametrize("keys", [MeanKeys(3), GradientKeys(3)], ids=["mean", "gradient"])
def test_absent_classes_keep_their_keys(keys, draw):
    keys.add_classes(IDS)
    for rows in ([0, 1, 2], [1, 1]):
        before = keys.vectors().clone()
        rows = torch.tensor(rows)
        class_rows, local = torch.unique(rows, return_inverse=True)
        keys.update(torch.randn(len(rows), 3, generator=draw), rows, class_rows, local, torch.ones(len(class_rows)))
    assert torch.equal(keys.vectors()[[0, 2]], before[[0, 2]]) and not torch.equal(keys.vectors()[1], before[1])


def test_scores_are_cosines_and_masked_before_the_first_sample():
    scores = key_scores(torch.tensor([[3.0, 4.0]]), torch.tensor([[2.0, 0.0], [9.0, 9.0]]), torch.tensor([4, 0]))
    assert scores[0, 0].item() == pytest.approx(0.6) and scores[0, 1].item() == MASKED_LOGIT
