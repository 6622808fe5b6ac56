import numpy as np
import pytest
import torch
from sklearn.covariance import oas
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from avalanche_f2ocl.heads import LDAHead
from avalanche_f2ocl.heads.lda import shrunk


@pytest.fixture(scope="module")
def data():
    """Real digits, float32 pixels (1797, 64), unequal classes: of every second class only half."""
    images, labels = load_digits(return_X_y=True)
    kept = (labels % 2 == 0) | (np.arange(len(labels)) % 2 == 0)
    return torch.from_numpy(images[kept]).float(), torch.from_numpy(labels[kept]).long()


def fitted(x, y, batch=10, **options):
    head = LDAHead(x.shape[1], **options)
    head.add_rows(int(y.max()) + 1)
    for part in torch.arange(len(x)).split(batch):
        head.update(x[part], y[part])
    return head


@pytest.mark.parametrize("shrinkage", [0.0001, 0.3, 1.0])
def test_equals_sklearn_on_the_full_data(data, shrinkage):
    x, y = data
    expected = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(x.double().numpy(), y.numpy())
    head = fitted(x, y, shrinkage=shrinkage, priors="counts")
    posterior = head.logits(x).double().softmax(1).numpy()
    np.testing.assert_allclose(posterior, expected.predict_proba(x.double().numpy()), atol=1e-3)
    assert (head.logits(x).argmax(1).numpy() == expected.predict(x.double().numpy())).all()


def test_equal_priors_leave_the_log_counts_out(data):
    x, y = data
    difference = fitted(x, y, priors="counts").logits(x[:5]) - fitted(x, y).logits(x[:5])
    expected = (y.bincount() / len(y)).log().expand(5, -1)
    torch.testing.assert_close(difference, expected, rtol=1e-3, atol=1e-3)


def test_oas_equals_sklearn_on_the_centred_data(data):
    x, y = data
    means = torch.stack([x[y == c].mean(0) for c in range(10)])
    centred = (x - means[y]).double().numpy()
    expected, _ = oas(centred, assume_centered=True)
    covariance = torch.from_numpy(centred.T @ centred / len(x))
    np.testing.assert_allclose(shrunk(covariance, torch.tensor(len(x))).numpy(), expected, rtol=1e-12, atol=1e-12)


def test_oas_of_equal_variances_is_the_identity_multiple():
    torch.testing.assert_close(shrunk(torch.eye(3) * 2, torch.tensor(10)), torch.eye(3) * 2)


@pytest.mark.parametrize("shrinkage", [None, 0.0])
def test_with_one_sample_a_class_the_nearest_wins(shrinkage):
    x = torch.tensor([[0.0, 0, 0], [4, 0, 0], [0, 4, 0]])
    head = fitted(x, torch.arange(3), shrinkage=shrinkage)
    test = torch.tensor([[1.0, 0, 9], [3, 0, 9], [1, 3, -9]])
    assert head.logits(test).argmax(1).tolist() == [0, 1, 2]


def test_a_constant_feature_does_no_harm(draw):
    x, y = torch.randn(60, 4, generator=draw), torch.arange(60) % 3
    x[:, 0], x[:, 1] = 7, x[:, 1] + 5 * y
    logits = fitted(x, y, shrinkage=0.0).logits(x)
    assert logits.isfinite().all() and (logits.argmax(1) == y).all()


def test_a_forgotten_class_leaves_the_others_as_they_were_but_for_the_shared_covariance(data):
    x, y = data
    head = fitted(x, y, shrinkage=0.1)
    head.remove_row(3)
    kept, scatter = y != 3, x[y == 3] - x[y == 3].mean(0)
    expected = fitted(x[kept], y[kept] - (y[kept] > 3).long(), shrinkage=0.1)
    moment = expected.moment + scatter.double().T @ scatter.double()
    torch.testing.assert_close(head.moment, moment, rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(head.means(), expected.means())
    assert (head.logits(x[kept]).argmax(1) == expected.logits(x[kept]).argmax(1)).float().mean() > 0.99


def test_oas_never_shrinks_beyond_the_identity_multiple():
    covariance = torch.diag(torch.tensor([1.0, 1.1, 0.9], dtype=torch.float64))
    torch.testing.assert_close(shrunk(covariance, torch.tensor(2)), torch.eye(3, dtype=torch.float64))


def test_a_class_with_one_sample_has_it_as_its_mean(data):
    """Against the definition: pooled covariance, shrunk by a half, on data with one sample of the last class."""
    x, y = data[0][:120].double(), data[1][:120].clamp(max=4)
    x, y = torch.cat([x[y < 4], x[y == 4][:1]]), torch.cat([y[y < 4], y[y == 4][:1]])
    head = fitted(x.float(), y, shrinkage=0.5)
    means = torch.stack([x[y == c].mean(0) for c in range(5)])
    covariance = (x - means[y]).T @ (x - means[y]) / len(x)
    covariance = 0.5 * covariance + 0.5 * covariance.trace() / 64 * torch.eye(64)
    distance = torch.stack([((x - m) @ torch.linalg.inv(covariance) * (x - m)).sum(1) for m in means], dim=1)
    expected = -distance / 2
    difference = head.logits(x.float()).double() - expected
    torch.testing.assert_close(difference - difference[:, :1], torch.zeros_like(difference), rtol=0, atol=2e-3)


def test_a_class_without_a_sample_leaves_the_others_as_they_are(data):
    x, y = data[0][:100], data[1][:100].clamp(max=3)
    alone, beside = fitted(x, y), LDAHead(64)
    beside.add_rows(5)
    beside.update(x, y)
    logits = beside.logits(x)
    assert logits.isfinite().all() and (logits.argmax(1) == alone.logits(x).argmax(1)).all()
