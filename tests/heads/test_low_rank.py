import numpy as np
import pytest
import torch

from avalanche_f2ocl.heads import low_rank
from avalanche_f2ocl.heads.low_rank import eigenpairs, pivoted_cholesky


def moment_of(samples, features, scales, seed=0):
    """A second moment, and what it was summed from, features of very different scales."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(samples, features)) * np.logspace(0, scales, features) + 3
    return torch.from_numpy(x.T @ x), torch.from_numpy(x)


@pytest.mark.parametrize("samples", [1, 7, 31, 32, 50, 75])
@pytest.mark.parametrize("scales", [0, -4])
def test_values_are_the_squared_singular_values_of_the_samples(samples, scales, monkeypatch):
    moment, x = moment_of(samples, 300, scales)
    monkeypatch.setattr(torch.linalg, "eigh", lambda m, eigh=torch.linalg.eigh: eigh(m) if len(m) < 300 else None)
    values, vectors = eigenpairs(moment, samples)
    assert vectors.shape == (300, samples)
    expected = np.linalg.svd(x.numpy(), compute_uv=False) ** 2
    np.testing.assert_allclose(values.flip(0).numpy(), expected, rtol=1e-7)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(samples), atol=1e-9)
    np.testing.assert_allclose(vectors * values @ vectors.T, moment, atol=1e-10 * moment.abs().max())


def test_copies_lower_the_rank():
    moment, x = moment_of(5, 100, 0)
    values, vectors = eigenpairs(3 * moment, 15)
    assert len(values) == 5
    np.testing.assert_allclose(vectors * values @ vectors.T, 3 * moment, atol=1e-9)


def test_more_samples_than_told_are_found_out():
    moment, _ = moment_of(40, 200, 0)
    assert pivoted_cholesky(moment, 39) is None and pivoted_cholesky(moment, 40) is not None
    values, _ = eigenpairs(moment, 39)
    assert len(values) == 40


def test_no_features_and_many_samples():
    values, vectors = eigenpairs(torch.zeros(8, 8).double(), 1)
    assert values.shape == (0,) and vectors.shape == (8, 0)
    moment, _ = moment_of(30, 20, 0)
    expected = torch.linalg.eigvalsh(moment)
    assert 30 > 20 / low_rank.LARGEST_SHARE and torch.allclose(eigenpairs(moment, 30)[0], expected)
