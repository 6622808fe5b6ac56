from functools import partial

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from avalanche_f2ocl.heads.regression import gcv_ridge, given_ridge, predicted_share, root_mean_square, supported


@pytest.fixture(scope="module")
def data():
    """Real digits: pixels (1797, 64) float64 in [0, 1], one-hot labels (1797, 10)."""
    images, labels = load_digits(return_X_y=True)
    return images / 16, np.eye(10)[labels]


def by_definition(x, y, penalty, distinct=None):
    """Weights and generalised cross-validation error from the data."""
    inverse = np.linalg.inv(x.T @ x + penalty * np.eye(x.shape[1]))
    hat = x @ inverse @ x.T
    error = ((y - hat @ y) ** 2).sum() / (1 - np.trace(hat) / (distinct or len(x))) ** 2
    return (inverse @ x.T @ y).T, error


def sums(x, y):
    return torch.from_numpy(x.T @ x), torch.from_numpy(y.T @ x), torch.tensor(len(x))


@pytest.mark.parametrize("samples", [100, 300, 1200])
def test_the_chosen_penalty_is_the_one_of_least_generalised_cross_validation_error(data, samples):
    x, y = (part[:samples] for part in data)
    penalties = np.trace(x.T @ x) / 64 * np.logspace(-6, 2, 41)
    errors = [by_definition(x, y, penalty)[1] for penalty in penalties]
    best = int(np.argmin(errors))
    assert 0 < best < 40
    solved = gcv_ridge(*sums(x, y))
    assert solved.penalty.item() == pytest.approx(penalties[best])
    assert solved.error.item() == pytest.approx(errors[best])
    np.testing.assert_allclose(solved.weight.numpy(), by_definition(x, y, penalties[best])[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("distinct", [None, 150])
def test_a_given_penalty_has_the_error_of_the_definition(data, penalty, distinct):
    x, y = (part[:200] for part in data)
    weight, error = by_definition(x, y, penalty, distinct)
    solved = given_ridge(*sums(x, y)[:2], penalty, 200, distinct)
    assert solved.penalty.item() == penalty
    assert solved.error.item() == pytest.approx(error)
    np.testing.assert_allclose(solved.weight.numpy(), weight, rtol=1e-7, atol=1e-9)


def test_a_penalty_that_drowns_in_rounding_is_solved_for_all_the_same(data):
    """Features that differ in three directions only leave the moment without an inverse."""
    draw = np.random.default_rng(0)
    x, y = 1e6 * draw.normal(size=(200, 3)) @ draw.normal(size=(3, 64)), data[1][:200]
    moment, cross, samples = sums(x, y)
    assert torch.linalg.cholesky_ex(moment + 1e-12 * torch.eye(64))[1] > 0
    weight = given_ridge(moment, cross, 1e-12, samples).weight.numpy()
    np.testing.assert_allclose(x @ weight.T, x @ np.linalg.lstsq(x, y, rcond=1e-10)[0], atol=1e-2)


def test_features_that_are_zero_predict_nothing():
    solved = gcv_ridge(torch.zeros(3, 3).double(), torch.zeros(2, 3).double(), torch.tensor(5))
    assert not solved.weight.any() and solved.error == 5
    assert predicted_share(solved.error, 5) == 0


def test_the_predicted_share_stays_within_what_can_be_known():
    shares = [predicted_share(torch.tensor(error).double(), 4).item() for error in (1.0, 5.0, 0.0)]
    assert shares == [0.75, 0, 1 - 1e-6]


def test_the_root_mean_square_is_that_of_the_outputs(data):
    x = data[0][:50]
    weight = np.random.default_rng(0).normal(size=(3, 64))
    expected = np.sqrt(((x @ weight.T) ** 2).mean(0))
    found = root_mean_square(torch.from_numpy(weight), torch.from_numpy(x.T @ x), torch.tensor(50))
    np.testing.assert_allclose(found.numpy(), expected)


@pytest.mark.parametrize("samples", [3, 10, 40])
def test_with_fewer_samples_than_features_the_penalty_is_that_of_exact_arithmetic(data, samples):
    """The definition in the samples' own coordinates, where no digits are lost."""
    draw = np.random.default_rng(0)
    x, y = np.maximum(data[0][:samples] @ draw.normal(size=(64, 400)), 0), data[1][:samples]
    values, turn = np.linalg.eigh(x @ x.T)
    penalties = values.sum() / 400 * np.logspace(-6, 2, 41)
    left = penalties / (values[:, None] + penalties)  # of I - H, its eigenvalues
    errors = (left**2 * ((turn.T @ y) ** 2).sum(1)[:, None]).sum(0) / left.mean(0) ** 2
    solved = gcv_ridge(*sums(x, y))
    assert solved.error.item() == pytest.approx(errors.min(), rel=1e-6)
    assert solved.penalty.item() == pytest.approx(penalties[errors.argmin()])


def of_few(draw, classes=4, each=10, width=200):
    """Features ``(40, 200)`` of samples around their class's mean, and one-hot labels ``(40, 4)``."""
    y = torch.eye(classes).double().repeat(each, 1)
    return 3 * y @ torch.randn(classes, width, generator=draw).double() + torch.randn(
        len(y), width, generator=draw
    ).double(), y


def test_of_samples_that_are_all_there_no_penalty_changes(draw):
    x, y = of_few(draw)
    moment, cross = x.T @ x, y.T @ x
    for ridge in (gcv_ridge, partial(given_ridge, penalty=0.5), partial(given_ridge, penalty=1e-15)):
        plain, told = (ridge(moment, cross, samples=torch.tensor(40), counts=n) for n in (None, y.sum(0)))
        assert all(torch.equal(one, other) for one, other in zip(plain, told, strict=True))
    penalties = torch.logspace(-6, 3, 41, dtype=torch.float64)
    assert torch.equal(supported(penalties, moment, cross, y.sum(0))[0], penalties)


@pytest.mark.parametrize("ridge", [gcv_ridge, partial(given_ridge, penalty=1e-3)], ids=["gcv", "given"])
@pytest.mark.parametrize("again", [False, True])
def test_what_samples_leave_that_are_taken_out_otherwise_is_not_fitted(draw, ridge, again):
    """The first eight had wrong labels; as they are taken out, perhaps to come again with the right ones, they look
    a little different. New samples are told apart as without them."""
    x, y = of_few(draw)
    new = x + torch.randn(x.shape, generator=draw)
    wrong, moved = y[:8].roll(1, 1), x[:8] + 0.7 * torch.randn(8, 200, generator=draw)
    moment, cross = x.T @ x, y[8:].T @ x[8:] + wrong.T @ x[:8]
    moment, cross, counts = moment - moved.T @ moved, cross - wrong.T @ moved, y[8:].sum(0)
    if again:
        moment, cross, counts = moment + moved.T @ moved, cross + y[:8].T @ moved, y.sum(0)
    solved = ridge(moment, cross, samples=counts.sum(), counts=counts)
    values, vectors = torch.linalg.eigh(moment + solved.penalty * torch.eye(200))
    assert values.min() > 0  # and what is fitted of a class is no more than its samples
    assert ((cross @ vectors).square() / values).sum(1).le(counts).all()
    assert ((new @ solved.weight.T).argmax(1) == y.argmax(1)).double().mean() > 0.9
