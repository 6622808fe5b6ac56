import hashlib

import pytest
import torch

from avalanche_f2ocl.heads.projection import FourierFeatures, RandomProjection, random_features
from avalanche_f2ocl.state.undo import Undo


def test_features_are_those_of_the_matrix(draw):
    projection, x = RandomProjection(5, 30, seed=3), torch.randn(4, 5, generator=draw)
    for row, features in zip(x, projection(x), strict=True):
        expected = [max(0.0, sum(a * b for a, b in zip(row, column, strict=True))) for column in projection.matrix.T]
        torch.testing.assert_close(features, torch.tensor(expected))


def test_the_matrix_is_standard_normal_and_depends_on_the_seed_alone():
    torch.manual_seed(1)
    one = RandomProjection(40, 500).matrix
    torch.manual_seed(2)
    assert torch.equal(RandomProjection(40, 500).matrix, one)
    assert not torch.equal(RandomProjection(40, 500, seed=1).matrix, one)
    assert abs(one.mean()) < 0.03 and abs(one.std() - 1) < 0.03


def test_the_checksum_is_saved_and_the_matrix_is_not():
    projection = RandomProjection(5, 30)
    state = projection.state_dict()
    assert list(state) == ["checksum"]
    assert bytes(state["checksum"].tolist()) == hashlib.sha256(projection.matrix.numpy().tobytes()).digest()


def test_another_matrix_is_refused():
    with pytest.raises(RuntimeError, match="another random matrix"):
        RandomProjection(5, 30, seed=1).load_state_dict(RandomProjection(5, 30).state_dict())


def test_uniform_ones_are_as_pytorch_initialises_a_linear_layer(draw):
    layer, x = torch.nn.Linear(40, 500, bias=False), torch.randn(3, 40, generator=draw)
    for kind, function in (("uniform-relu", torch.relu), ("uniform-sigmoid", torch.sigmoid)):
        projection = random_features(40, 500, kind=kind)
        bound = layer.weight.abs().max().item()
        assert bound * 0.99 < projection.matrix.abs().max() < bound * 1.01
        assert projection.matrix.std().item() == pytest.approx(layer.weight.std().item(), rel=0.02)
        torch.testing.assert_close(projection(x), function(x @ projection.matrix))


def test_products_of_fourier_features_are_the_kernel(draw):
    x = torch.randn(20, 5, generator=draw)
    features = FourierFeatures(5, 20_000, gamma=0.3)(x)
    expected = (-0.3 * torch.cdist(x, x).square()).exp().double()
    torch.testing.assert_close(features @ features.T, expected, rtol=0, atol=0.05)


def test_the_kernel_is_as_wide_as_the_first_mini_batch_and_stays_so(draw):
    first, second = torch.randn(10, 5, generator=draw) * 3, torch.randn(10, 5, generator=draw)
    features = FourierFeatures(5, 9)
    features.see(first)
    expected = 1 / (5 * first.double().numpy().var())
    assert features.gamma.item() == pytest.approx(expected)
    features.see(second)
    assert features.gamma.item() == pytest.approx(expected)
    other = FourierFeatures(5, 9)
    other.load_state_dict(features.state_dict())
    assert torch.equal(other(second), features(second))
    features.clear()
    assert features.gamma == 0 and features(second).isfinite().all()


def test_a_mini_batch_that_fails_does_not_set_the_width(draw):
    features, x = FourierFeatures(5, 9), torch.randn(10, 5, generator=draw)
    with pytest.raises(KeyError), Undo([features]):
        features.see(x)
        raise KeyError
    assert features.gamma == 0
    with Undo([features]):
        features.see(x)
    assert features.gamma > 0


@pytest.mark.parametrize("x", [torch.zeros(2, 3), torch.ones(1, 3)])
def test_vectors_without_variance_do_no_harm(x):
    features = FourierFeatures(3, 9)
    features.see(x)
    assert features(x).isfinite().all()


def test_a_given_width_stays(draw):
    features = FourierFeatures(5, 9, gamma=0.2)
    features.see(torch.randn(10, 5, generator=draw))
    features.clear()
    assert features.gamma.item() == 0.2
