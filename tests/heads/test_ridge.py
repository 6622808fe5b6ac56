import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge, RidgeCV

from avalanche_f2ocl.heads import RidgeHead
from avalanche_f2ocl.heads.ridge import default_width
from tests.heads.fitting import fitted


@pytest.mark.parametrize("ridge", [0.01, 100.0])
@pytest.mark.parametrize("projection", [0, 150])
def test_equals_sklearn_on_the_full_data(data, ridge, projection):
    x, y = data
    head = fitted(x, y, projection=projection, ridge=ridge, priors="counts")
    features = head.features(x).numpy()
    assert features.shape[1] == (projection or 64) and (projection == 0 or features.min() == 0)
    regression = Ridge(alpha=ridge, fit_intercept=False).fit(features, np.eye(10)[y])
    np.testing.assert_allclose(head.logits(x).numpy(), regression.predict(features), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ridge", [None, 1.0])
def test_with_equal_priors_outputs_have_mean_square_1_over_the_samples(data, ridge):
    x, y = data
    some = y.argsort()[:700]
    equal = fitted(x[some], y[some], projection=0, ridge=ridge).logits(x[some])
    counts = fitted(x[some], y[some], projection=0, ridge=ridge, priors="counts").logits(x[some])
    np.testing.assert_allclose(equal.numpy(), (counts / counts.square().mean(0).sqrt()).numpy(), rtol=1e-4, atol=1e-5)


def test_with_equal_priors_rare_classes_are_answered(data):
    """Ten samples each of five digits beside hundreds of the others."""
    x, y = data
    train = torch.cat([(y == c).nonzero().squeeze(1)[: 10 if c < 5 else 120] for c in range(10)])
    test = torch.cat([(y == c).nonzero().squeeze(1)[120:] for c in range(10)])
    right = {}
    for priors in ("equal", "counts"):
        predicted = fitted(x[train], y[train], projection=0, priors=priors).logits(x[test]).argmax(1)
        right[priors] = [(predicted == y[test])[y[test] < 5].float().mean(), (predicted == y[test]).float().mean()]
    assert right["equal"][0] > right["counts"][0] + 0.2 and right["equal"][1] > right["counts"][1] + 0.1
    assert right["equal"][1] > 0.8


def test_it_predicts_about_as_well_as_with_sklearn_leave_one_out(data):
    x, y = data
    train, test = slice(0, 1000), slice(1000, None)
    head = fitted(x[train], y[train], projection=0)
    alphas = np.logspace(-4, 4, 60)
    other = RidgeCV(alphas, fit_intercept=False).fit(x[train].numpy(), np.eye(10)[y[train]])
    ours = (head.logits(x[test]).argmax(1) == y[test]).float().mean().item()
    theirs = (other.predict(x[test].numpy()).argmax(1) == y[test].numpy()).mean()
    assert abs(ours - theirs) < 0.01 and ours > 0.85


@pytest.mark.parametrize("ridge", [None, 1.0])
def test_fewer_samples_than_features_do_no_harm(draw, ridge):
    x, y = torch.randn(6, 40, generator=draw), torch.arange(6) % 3
    logits = fitted(x, y, projection=0, ridge=ridge).logits(x)
    assert logits.isfinite().all() and (logits.argmax(1) == y).all()


@pytest.mark.parametrize("ridge", [None, 1.0])
def test_vectors_that_are_zero_do_no_harm(ridge):
    head = fitted(torch.zeros(4, 3), torch.arange(4) % 2, projection=0, ridge=ridge)
    assert head.logits(torch.zeros(1, 3)).tolist() == [[0, 0]]


def test_the_default_width_is_that_of_the_file(monkeypatch, data):
    x, y = data
    monkeypatch.setattr("avalanche_f2ocl.heads.ridge.default_width", lambda: 30)
    head = fitted(x, y)
    monkeypatch.undo()
    other = RidgeHead(64)
    assert len(other.moment) == default_width()
    other.load_state_dict(head.state_dict())
    assert torch.equal(other.logits(x), head.logits(x))


def test_a_given_width_is_not_changed_by_a_file(data):
    head, other = fitted(*data, projection=30), RidgeHead(64, projection=20)
    with pytest.raises(RuntimeError, match="size mismatch"):
        other.load_state_dict(head.state_dict())


def test_after_one_sample_its_output_is_1():
    """The root mean square of one output is its size."""
    x = torch.tensor([[3.0, 4.0]])
    assert fitted(x, torch.tensor([0]), projection=0, ridge=2.0).logits(x).item() == pytest.approx(1)
    assert fitted(x, torch.tensor([0]), projection=0).logits(x).item() == pytest.approx(1)


def test_defaults(monkeypatch):
    matrices = [RidgeHead(4, projection=9, **seed).projection.matrix for seed in ({}, {"seed": 0})]
    assert torch.equal(*matrices)
    for cuda, width in ((False, 2000), (True, 5000)):
        monkeypatch.setattr(torch.cuda, "is_available", lambda cuda=cuda: cuda)
        assert default_width() == width


@pytest.mark.parametrize("ridge", [None, 3.0])
def test_the_evidence_is_the_share_that_generalised_cross_validation_says_is_predicted(data, ridge):
    x, y = data[0][:400], data[1][:400]
    head = fitted(x, y, projection=0, ridge=ridge)
    evidence = head.evidence()
    x, y, penalty = x.double().numpy(), np.eye(10)[y], head._solution.facts.penalty
    hat = x @ np.linalg.inv(x.T @ x + penalty * np.eye(64)) @ x.T
    error = ((y - hat @ y) ** 2).sum() / (1 - np.trace(hat) / 400) ** 2
    assert evidence.dtype == torch.float64 and evidence.item() == pytest.approx(1 - error / 400)
    assert ridge is None or penalty == ridge
    head.update(data[0][400:405], data[1][400:405])
    assert head.evidence() == evidence  # as of the last solution in full


def test_labels_that_vectors_tell_nothing_of_have_no_evidence(draw):
    x, y = torch.randn(300, 5, generator=draw), torch.randint(0, 8, (300,), generator=draw)
    assert fitted(x, y, projection=0).evidence() < 0.05
    assert RidgeHead(4, projection=0).evidence() == 0  # nothing learned


def test_updates_go_in_and_out_of_inference_mode(data):
    x, y = data
    head = fitted(x[:1500], y[:1500], projection=0)
    for start, inside in ((1500, True), (1505, True), (1510, False), (1515, True)):
        with torch.inference_mode(inside):
            head.logits(x[:1])
            head.update(x[start : start + 5], y[start : start + 5])
    solution, full = head._solution, fitted(x[:1520], y[:1520], projection=0, ridge=head._solution.facts[0])
    np.testing.assert_allclose(head.logits(x), full.logits(x), rtol=1e-5, atol=1e-5)
    assert head.solution() is solution  # kept current
