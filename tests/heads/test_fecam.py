import numpy as np
import pytest
import torch

from avalanche_f2ocl.heads import FeCAMHead
from avalanche_f2ocl.heads.fecam import class_covariances, correlations
from avalanche_f2ocl.state.undo import Undo


def fitted(x, y, batch=10, **options):
    head = FeCAMHead(x.shape[1], **options)
    head.add_rows(int(y.max()) + 1)
    for part in torch.arange(len(x)).split(batch):
        head.update(x[part], y[part])
    return head


def test_covariances_are_numpys_of_the_unit_vectors(data):
    x, y = data[0][:300], data[1][:300]
    head = fitted(x, y, batch=70)
    units = (x / x.norm(dim=1, keepdim=True)).double().numpy()
    for row, covariance in enumerate(
        class_covariances(head.used("moments"), head.used("unit_sums"), head.used("counts"))
    ):
        np.testing.assert_allclose(covariance.numpy(), np.cov(units[y.numpy() == row].T), atol=1e-8)


@pytest.mark.parametrize("off_diagonal", [0.0, 1.0])
def test_correlations_are_those_of_the_equations(draw, off_diagonal):
    x = torch.randn(30, 6, generator=draw).double().numpy()
    covariance = np.cov(x.T)
    first, second = np.trace(covariance) / 6, (covariance.sum() - np.trace(covariance)) / 30
    shrunk = covariance + 2 * first * np.eye(6) + off_diagonal * second * (1 - np.eye(6))
    expected = shrunk / np.sqrt(np.outer(np.diagonal(shrunk), np.diagonal(shrunk)))
    got = correlations(torch.from_numpy(covariance)[None], shrinkage=2.0, off_diagonal=off_diagonal)[0]
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12)


def test_a_class_with_one_sample_has_the_identity(data):
    x = data[0][:1]
    head = fitted(x, torch.zeros(1, dtype=torch.int64))
    test = data[0][1:5]
    away = (test / test.norm(dim=1, keepdim=True) - x / x.norm()).square().sum(1)
    torch.testing.assert_close(head.logits(test)[:, 0], -away)


def test_a_forgotten_class_leaves_the_others_bit_for_bit(data):
    x, y = data[0][:200], data[1][:200]
    head = fitted(x, y)
    before = head.logits(x)
    head.remove_row(3)
    assert torch.equal(head.logits(x), torch.cat([before[:, :3], before[:, 4:]], dim=1))


def test_a_block_that_fails_changes_no_bit(data):
    x, y = data[0][:60], data[1][:60]
    head = fitted(x, y)
    state, logits = {name: value.clone() for name, value in head.state_dict().items()}, head.logits(x)
    with pytest.raises(KeyError), Undo([head]) as undo:
        undo.save_rows(torch.arange(10))
        head.add_rows(5)
        head.update(data[0][60:90], data[1][60:90])
        head.logits(x)
        raise KeyError
    assert all(torch.equal(value, state[name]) for name, value in head.state_dict().items())
    assert torch.equal(head.logits(x), logits)


def test_the_inverses_are_made_once_after_an_update(data, monkeypatch):
    head = fitted(data[0][:40], data[1][:40])
    head.prepare()
    monkeypatch.setattr("avalanche_f2ocl.heads.fecam.correlations", None)
    head.prepare()
    assert head.logits(data[0][:3]).shape == (3, 10)
    head.double().to("cpu")
    with pytest.raises(TypeError):
        head.logits(data[0][:3])
