"""Where predictions and mini-batches take turns, a ridge head is not solved anew, nor after it was loaded."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from avalanche_f2ocl.heads import MASKED_LOGIT, RidgeHead
from avalanche_f2ocl.state.undo import Undo
from tests.heads.fitting import fitted


@pytest.fixture
def solves(monkeypatch):
    """A list that grows by one at every solution in full."""
    solved, solve = [], RidgeHead.solve
    monkeypatch.setattr(RidgeHead, "solve", lambda *args: (solved.append(1), solve(*args))[1])
    return solved


def by_numpy(head, x, y, test):
    """Outputs of the full data at the penalty of the head's solution."""
    x, test, (penalty, *_) = head.features(x).numpy(), head.features(test).numpy(), head._solution.facts
    targets = np.eye(head.num_rows)[y]
    weight = np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ targets)
    outputs = test @ weight
    return outputs / np.sqrt(((x @ weight) ** 2).mean(0)) if head.priors == "equal" else outputs


@pytest.mark.parametrize("options", [{}, {"ridge": 0.5}, {"priors": "counts"}, {"projection": 80}])
def test_predictions_between_mini_batches_are_those_of_the_full_data_at_the_chosen_penalty(data, options, solves):
    x, y = data
    head = fitted(x[:1500], y[:1500], **{"projection": 0, **options})
    head.logits(x[:1])
    for start in range(1500, 1640, 10):
        head.update(x[start : start + 10], y[start : start + 10])
        got = head.logits(x[1700:])
        expected = by_numpy(head, x[: start + 10], y[: start + 10], x[1700:])
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    assert len(solves) == 1
    head.update(x[1640:1655], y[1640:1655])  # now it is more than a tenth
    again = head.logits(x[1700:])
    assert len(solves) == 2 and torch.equal(again, fitted_at_once(head, x[:1655], y[:1655]).logits(x[1700:]))


def fitted_at_once(head, x, y):
    """A head with the same sums that has no solution yet."""
    other = RidgeHead(64, len(head.moment) if head.projection else 0, head.ridge, head.priors)
    other.load_state_dict({name: value for name, value in head.state_dict().items() if "solution" not in name})
    assert other.total == len(x)
    return other


def test_a_class_that_comes_between_predictions_is_answered_at_once(draw, solves):
    """Of twenty classes the last comes late: less than a tenth more."""
    y = torch.arange(1000) % 20
    x = torch.eye(20)[y] + 0.3 * torch.randn(1000, 20, generator=draw)
    x = torch.cat([x, torch.randn(1000, 30, generator=draw)], dim=1)
    first, late = y < 19, (y == 19).nonzero().squeeze(1)[:10]
    head = fitted(x[first], y[first], projection=0)
    head.logits(x[:1])
    head.add_rows(1)
    assert (head.logits(x)[:, 19] == MASKED_LOGIT).all()
    head.update(x[late], y[late])
    seen = torch.cat([first.nonzero().squeeze(1), late])
    np.testing.assert_allclose(head.logits(x), by_numpy(head, x[seen], y[seen], x), rtol=1e-5, atol=1e-5)
    assert len(solves) == 1


def test_it_is_solved_anew_where_the_classes_have_grown_by_more_than_a_tenth(data, solves):
    x, y = data
    head = fitted(x[:1500], y[:1500], projection=0)
    head.logits(x[:1])
    head.add_rows(2)
    head.update(x[1500:1502], torch.tensor([10, 11]))
    head.logits(x[:1])
    assert len(solves) == 2


def test_training_without_predictions_keeps_no_solution(data, solves):
    x, y = data
    head = fitted(x[:1500], y[:1500], projection=0)
    assert head._solution is None and not solves
    head.logits(x[:1])
    for start in range(1500, 1509):
        assert head._solution is not None
        head.update(x[start : start + 1], y[start : start + 1])
    assert head._solution is None  # after eight of them
    head.logits(x[:1])
    for start in range(1509, 1530):  # each eighth is followed by a prediction
        head.update(x[start : start + 1], y[start : start + 1])
        if start % 8 == 7:
            head.logits(x[:1])
    assert len(solves) == 2


def test_a_large_mini_batch_is_left_to_the_next_solution(data, solves):
    x, y = data
    head = fitted(x[:1500], y[:1500], projection=0)
    for size, expected in ((16, 1), (17, 2)):
        head.logits(x[:1])
        head.update(x[1500 : 1500 + size], y[1500 : 1500 + size])
        head.logits(x[:1])
        assert len(solves) == expected


@pytest.mark.parametrize("ridge", [1e-6, 1e12])
def test_a_penalty_with_which_rounding_would_show_is_solved_in_full(data, ridge, solves):
    x, y = data
    head = fitted(x[:1500], y[:1500], projection=0, ridge=ridge)
    head.logits(x[:1])
    head.update(x[1500:1510], y[1500:1510])
    assert torch.equal(head.logits(x), fitted_at_once(head, x[:1510], y[:1510]).logits(x)) and len(solves) == 3


def test_a_forgotten_class_has_no_part_in_the_next_prediction(data, solves):
    x, y = data
    head = fitted(x[:1500], y[:1500], projection=0)
    head.logits(x[:1])
    head.update(x[1500:1510], y[1500:1510])
    head.remove_row(3)
    assert torch.equal(head.logits(x), fitted_at_once(head, x[:1510], y[:1510]).logits(x)) and len(solves) == 3


@pytest.mark.parametrize("fails", [True, False])
def test_predictions_in_and_after_a_block_are_of_what_is_learned(data, fails):
    x, y = data
    head = fitted(x[:1500], y[:1500], projection=0)
    before = head.logits(x[1700:])
    head.update(x[1500:1510], y[1500:1510])
    try:
        with Undo([head, head.distinct]) as undo:
            undo.save_rows(torch.arange(10))
            for start in (1510, 1515):
                head.update(x[start : start + 5], y[start : start + 5])
                got = head.logits(x[1700:])
                expected = by_numpy(head, x[: start + 5], y[: start + 5], x[1700:])
                np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
            if fails:
                raise OSError
    except OSError:
        pass
    got, end = head.logits(x[1700:]), 1510 if fails else 1520
    np.testing.assert_allclose(got, by_numpy(head, x[:end], y[:end], x[1700:]), rtol=1e-5, atol=1e-5)
    assert not torch.equal(got, before)


@pytest.mark.parametrize("updates", [0, 2])
def test_a_solution_goes_with_the_state_and_learning_goes_on_alike(data, updates, solves):
    x, y = data
    head, other = fitted(x[:1500], y[:1500], projection=0), RidgeHead(64, projection=0)
    head.logits(x[:1])
    for start in range(1500, 1500 + 3 * updates, 3):
        head.update(x[start : start + 3], y[start : start + 3])
    other.load_state_dict(head.state_dict())
    assert torch.equal(other.logits(x), head.logits(x)) and len(solves) == 1
    assert other.evidence() == head.evidence()
    for one in (head, other):
        one.update(x[1600:1603], y[1600:1603])
    assert torch.equal(other.logits(x), head.logits(x)) and len(solves) == 1
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in head.state_dict().items())


def test_of_a_copy_and_its_original_each_learns_alone(data):
    x, y = data
    head = fitted(x[:1500], y[:1500], projection=0)
    head.logits(x[:1])
    head.update(x[1500:1505], y[1500:1505])
    copy, before = deepcopy(head), head.logits(x)
    copy.update(x[1505:1510], y[1505:1510])
    copy.logits(x)
    assert torch.equal(head.logits(x), before)
    head.update(x[1505:1510], y[1505:1510])
    assert torch.equal(head.logits(x), copy.logits(x))
