import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestCentroid

from avalanche_f2ocl.heads import MASKED_LOGIT, NCMHead


def fitted(metric, z, y, classes):
    head = NCMHead(z.shape[1], metric)
    head.add_rows(classes)
    head.update(z, y)
    return head


def test_euclidean_equals_sklearn_nearest_centroid(draw):
    z, y = torch.randn(200, 8, generator=draw), torch.arange(200) % 7
    test = torch.randn(300, 8, generator=draw)
    expected = NearestCentroid().fit(z.numpy(), y.numpy()).predict(test.numpy())
    assert fitted("euclidean", z, y, 7).logits(test).argmax(1).tolist() == expected.tolist()


def test_cosine_logits_by_hand():
    head = fitted("cosine", torch.tensor([[2.0, 0.0], [4.0, 0.0], [0.0, 3.0]]), torch.tensor([0, 0, 1]), 2)
    np.testing.assert_allclose(head.logits(torch.tensor([[3.0, 4.0]])).numpy(), [[0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_a_class_without_a_sample_is_masked(metric):
    head = fitted(metric, torch.ones(1, 2) * 1e4, torch.tensor([1]), 3)
    logits = head.logits(-torch.ones(1, 2) * 1e4)
    assert logits.argmax(1).item() == 1
    assert logits[0, [0, 2]].tolist() == [MASKED_LOGIT, MASKED_LOGIT]
