import numpy as np
import pytest
import torch

from avalanche_f2ocl.heads.running_inverse import (
    corrected,
    downdate,
    inverse_of,
    output_squares,
    well_conditioned,
)

CLASSES = 7


def by_numpy(x, y, penalty):
    """Weights (C, F) from all samples."""
    moment = x.T @ x + penalty * np.eye(x.shape[1])
    return np.linalg.solve(moment, x.T @ np.eye(CLASSES)[y]).T


def features(count, rank, noise, draw, length=64):
    """Most of them nearly in a space of ``rank`` dimensions."""
    base = torch.randn(rank, length, generator=torch.Generator().manual_seed(1)).double()
    x = torch.randn(count, rank, generator=draw).double() @ base
    return x + noise * torch.randn(count, length, generator=draw).double()


@pytest.mark.parametrize("batch", [1, 10, 16])
def test_a_downdate_is_the_inverse_with_more_samples_in_it(batch, draw):
    x = torch.randn(40, 12, generator=draw).double()
    old, new = x[:-batch], x[-batch:]
    inverse = torch.linalg.inv(old.T @ old + 0.3 * torch.eye(12).double())
    gain = downdate(inverse, new)
    expected = np.linalg.inv(x.numpy().T @ x.numpy() + 0.3 * np.eye(12))
    np.testing.assert_allclose(inverse.numpy(), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(gain.numpy(), new.numpy() @ expected, rtol=1e-9, atol=1e-12)


def test_the_inverse_of_a_moment(draw):
    x = torch.randn(5, 9, generator=draw).double()
    expected = np.linalg.inv(x.numpy().T @ x.numpy() + 2 * np.eye(9))
    np.testing.assert_allclose(inverse_of(x.T @ x, 2.0).numpy(), expected, rtol=1e-10, atol=1e-12)


def test_where_rounding_leaves_no_inverse_there_is_none():
    assert inverse_of(-torch.eye(2).double(), 0.5) is None
    assert downdate(torch.eye(2).double() * float("nan"), torch.ones(1, 2).double()) is None
    assert downdate(-torch.eye(2).double(), torch.ones(1, 2).double()) is None


@pytest.mark.parametrize(
    "rank, noise, relative", [(64, 0, 1e-2), (64, 0, 100), (5, 1e-4, 1e-6), (5, 0, 1e-6), (1, 1e-3, 1e-6)]
)
def test_500_steps_end_where_all_samples_at_once_do(rank, noise, relative, draw):
    """Also with features that hardly differ and next to no penalty, where it tells when it cannot hold the figures."""
    x, y = features(6500, rank, noise, draw), torch.randint(0, CLASSES, (6500,), generator=draw)
    test, start = features(100, rank, noise, draw), 1500
    moment, penalty = x[:start].T @ x[:start], 0.0
    penalty = relative * moment.trace().item() / 64
    weight = torch.from_numpy(by_numpy(x[:start].numpy(), y[:start].numpy(), penalty))
    inverse, kept = inverse_of(moment, penalty), 0
    for part in torch.arange(start, 6500).split(10):
        if not well_conditioned(moment, x[part], penalty):
            break
        weight = corrected(weight, x[part], y[part], downdate(inverse, x[part]))
        moment = moment + x[part].T @ x[part]
        kept = int(part[-1]) + 1
    expected = by_numpy(x[:kept].numpy(), y[:kept].numpy(), penalty) @ test.numpy().T
    assert np.abs(weight.numpy() @ test.numpy().T - expected).max() < 1e-6 * expected.std()
    assert kept == 6500 or (relative == 1e-6 and kept > 2000)


def test_a_new_class_starts_from_zeros(draw):
    x, y = torch.randn(50, 8, generator=draw).double(), torch.arange(50) % 6
    y[-5:] = 6
    weight = torch.from_numpy(by_numpy(x[:45].numpy(), y[:45].numpy(), 1.5))
    assert not weight[6].any()
    inverse = inverse_of(x[:45].T @ x[:45], 1.5)
    weight = corrected(weight, x[45:], y[45:], downdate(inverse, x[45:]))
    np.testing.assert_allclose(weight.numpy(), by_numpy(x.numpy(), y.numpy(), 1.5), rtol=1e-9, atol=1e-12)


def test_the_squares_of_outputs_are_those_of_the_samples(draw):
    x, y = torch.randn(50, 8, generator=draw).double(), torch.arange(50) % CLASSES
    weight = torch.from_numpy(by_numpy(x.numpy(), y.numpy(), 3.0))
    sums = torch.eye(CLASSES).double()[y].T @ x
    naive = [sum((row @ sample) ** 2 for sample in x.numpy()) for row in weight.numpy()]
    np.testing.assert_allclose(output_squares(weight, sums, 3.0).numpy(), naive, rtol=1e-10)


def test_squares_that_drown_in_rounding_are_none(draw):
    x, y = torch.randn(50, 8, generator=draw).double(), torch.arange(50) % CLASSES
    weight = torch.from_numpy(by_numpy(x.numpy(), y.numpy(), 1e10))
    assert output_squares(weight, torch.eye(CLASSES).double()[y].T @ x, 1e10) is None


def test_samples_that_are_not_in_the_moment_yet_count():
    moment = torch.eye(2).double()
    assert well_conditioned(moment, torch.ones(1, 2).double(), 1e-6)
    assert not well_conditioned(moment, torch.full((1, 2), 1e3).double(), 1e-6)
