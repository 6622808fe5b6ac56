import hashlib

import pytest
import torch

from avalanche_f2ocl.heads.projection import RandomProjection


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
