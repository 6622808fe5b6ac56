import numpy as np
import torch

from avalanche_f2ocl.state.class_means import ClassMeans


def test_equals_the_full_mean_whatever_the_batches(draw):
    vectors = torch.randn(600, 16, generator=draw) * 100
    rows = torch.randint(5, (600,), generator=draw)
    expected = np.stack([vectors[rows == c].double().numpy().mean(0) for c in range(5)])
    for size in (1, 7, 600):
        means = ClassMeans(16)
        means.add_rows(5)
        for v, r in zip(vectors.split(size), rows.split(size), strict=True):
            means.update(v, r)
        np.testing.assert_allclose(means.means().numpy(), expected, rtol=1e-6, atol=1e-6)
        assert means.used("counts").tolist() == torch.bincount(rows).tolist()


def test_chosen_rows_and_rows_without_a_sample():
    means = ClassMeans(2)
    means.add_rows(3)
    means.update(torch.tensor([[2.0, 4.0]]), torch.tensor([2]))
    assert means.means(torch.tensor([2, 0, 2])).tolist() == [[2, 4], [0, 0], [2, 4]]
    assert means.means().shape == (3, 2) and means.means().dtype == torch.float32
