import numpy as np
import pytest
import torch

from avalanche_f2ocl.heads import HeldOutRidgeHead, RidgeHead, TaskRidgeHead
from avalanche_f2ocl.heads.held_out import PENALTIES, held_out_errors, is_held_out
from avalanche_f2ocl.state.undo import Undo


def fitted(make, x, y, batch=10, **options):
    head = make(x.shape[1], projection=0, priors="counts", **options)
    head.add_rows(int(y.max()) + 1)
    for part in torch.arange(len(x)).split(batch):
        head.update(x[part], y[part])
    return head


@pytest.mark.parametrize("count", [40, 300])  # fewer samples than features, and more
def test_errors_are_those_of_the_samples_themselves(data, count):
    x, y = data[0][:count].double().numpy(), np.eye(10)[data[1][:count]]
    held = np.arange(count) % 5 == 4
    train, its = x[~held], y[~held]
    sums = [
        torch.from_numpy(part) for part in (train.T @ train, its.T @ train, x[held].T @ x[held], y[held].T @ x[held])
    ]
    penalties = [1e-3, 0.1, 1.0, 100.0]
    for error, penalty in zip(held_out_errors(*sums, torch.tensor(penalties).double(), count), penalties, strict=True):
        weight = np.linalg.solve(train.T @ train + penalty * np.eye(64), train.T @ its)
        assert error.item() == pytest.approx(((y[held] - x[held] @ weight) ** 2).sum() - held.sum(), rel=1e-6)


@pytest.mark.parametrize("make", [HeldOutRidgeHead, TaskRidgeHead])
def test_each_fifth_sample_is_held_out_however_the_stream_is_cut(data, make):
    x, y = data[0][:63], data[1][:63]
    one, other = fitted(make, x, y), fitted(make, x, y, batch=7)
    held = x[4::5].double()
    for head in (one, other):
        torch.testing.assert_close(head.held_moment, held.T @ held)
        assert torch.equal(head.held_counts[:10], y[4::5].bincount(minlength=10))
        assert head.solution().facts[0] in PENALTIES
    assert is_held_out(torch.tensor(4), 6).tolist() == [True, False, False, False, False, True]


def test_without_a_held_out_sample_the_penalty_is_that_of_cross_validation(data):
    x, y = data[0][:4], data[1][:4]
    assert fitted(HeldOutRidgeHead, x, y).solution().facts[0] == fitted(RidgeHead, x, y).solution().facts[0]


def test_with_that_penalty_and_matrix_a_plain_ridge_head_predicts_the_same(data):
    x, y = data[0][:300], data[1][:300]
    options = dict(projection=200, priors="counts", seed=3)
    ours = HeldOutRidgeHead(64, **options)
    ours.add_rows(10)
    ours.update(x, y)
    plain = RidgeHead(64, ridge=ours.solution().facts[0], **options)
    plain.add_rows(10)
    plain.update(x, y)
    torch.testing.assert_close(plain.logits(data[0][300:]), ours.logits(data[0][300:]))


def test_a_given_penalty_is_taken(data):
    assert fitted(TaskRidgeHead, data[0][:50], data[1][:50], ridge=0.7).solution().facts[0] == 0.7


def test_a_block_that_fails_changes_no_bit_and_one_that_ends_well_is_as_none(data):
    x, y = data[0][:60], data[1][:60]
    head, plain = fitted(HeldOutRidgeHead, x[:40], y[:40]), fitted(HeldOutRidgeHead, x[:40], y[:40])
    before = {name: value.clone() for name, value in head.state_dict().items()}
    with pytest.raises(KeyError), Undo(head.modules()) as undo:
        undo.save_rows(torch.arange(10))
        head.update(x[40:], y[40:])
        head.logits(x)
        raise KeyError
    assert all(torch.equal(value, before[name]) for name, value in head.state_dict().items())
    with Undo(head.modules()):
        head.update(x[40:], y[40:])
        inside = head.logits(x)
    plain.update(x[40:], y[40:])
    torch.testing.assert_close(inside, plain.logits(x))
    torch.testing.assert_close(head.logits(x), plain.logits(x))


def test_a_forgotten_class_takes_its_means_out_of_each_moment(data):
    x, y = data[0][:100], data[1][:100]
    head = fitted(TaskRidgeHead, x, y)
    head.end_task()
    head.update(x[:30], y[:30])
    x, expected = x.double(), {}
    parts = {"moment": [*range(100), *range(30)], "start_moment": range(100), "held_moment": range(4, 30, 5)}
    for name, indices in parts.items():
        chosen, labels = x[list(indices)], y[list(indices)]
        own = chosen[labels == 3]
        expected[name] = chosen.T @ chosen - own.sum(0).outer(own.sum(0)) / max(1, len(own))
    head.remove_row(3)
    for name, moment in expected.items():
        torch.testing.assert_close(getattr(head, name), moment)
    for _ in range(9):
        head.remove_row(0)
    assert not any(getattr(head, name).any() for name in (*expected, "penalty", "total"))


def test_the_penalty_of_a_task_holds_until_the_next_has_ended(data):
    x, y = data
    head = fitted(TaskRidgeHead, x[:200], y[:200])
    head.end_task()
    first = head.solution().facts[0]
    noise = torch.randn(200, 64, generator=torch.Generator().manual_seed(0))  # best answered by a large penalty
    head.update(noise, y[:200])
    assert head.solution().facts[0] == first
    head.end_task()
    assert head.solution().facts[0] > first
    head.end_task()  # of a task without a sample
    assert head.solution().facts[0] == head.penalty > first


def test_the_width_is_that_of_the_file(data, monkeypatch):
    x, y = data[0][:60], data[1][:60]
    monkeypatch.setattr("avalanche_f2ocl.heads.ridge.default_width", lambda: 30)
    head = TaskRidgeHead(64)
    head.add_rows(10)
    head.update(x, y)
    monkeypatch.setattr("avalanche_f2ocl.heads.ridge.default_width", lambda: 20)
    other = TaskRidgeHead(64)
    other.load_state_dict(head.state_dict())
    assert torch.equal(other.logits(x), head.logits(x))


def test_what_scaling_the_outputs_is_worth_has_nothing_to_do_with_the_choice_of_the_penalty(data):
    """Scaled by their root mean square they rank classes otherwise, whichever rule has chosen the penalty."""
    x, y = data[0][:400], torch.where(data[1][:400] < 5, data[1][:400], 0)  # the first class is as large as five
    test, truth = data[0][900:], torch.where(data[1][900:] < 5, data[1][900:], 0)
    rare = truth > 0
    for make in (RidgeHead, HeldOutRidgeHead):
        right = {}
        for priors in ("counts", "equal"):
            head = make(64, projection=0, priors=priors)
            head.add_rows(5)
            head.update(x, y)
            right[priors] = (head.logits(test).argmax(1) == truth)[rare].float().mean()
        assert right["equal"] > right["counts"] + 0.05, make
