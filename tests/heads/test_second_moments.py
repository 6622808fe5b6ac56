import pytest
import torch
from sklearn.datasets import load_digits

from avalanche_f2ocl.heads import LDAHead, RidgeHead
from avalanche_f2ocl.state.undo import Undo

HEADS = {
    "lda": lambda: LDAHead(4),
    "ridge": lambda: RidgeHead(4, projection=0),
    "projected": lambda: RidgeHead(4, projection=9),
}


@pytest.fixture(params=HEADS)
def head(request, draw):
    head = HEADS[request.param]()
    head.add_rows(3)
    head.update(*samples(30, draw))
    return head


def samples(count, draw):
    rows = torch.arange(count) % 3
    return torch.eye(4)[rows] + torch.randn(count, 4, generator=draw), rows


def test_the_moment_is_that_of_the_features(head, draw):
    x, rows = samples(7, draw)
    before, total = head.moment.clone(), head.total.item()
    head.update(x, rows)
    expected = sum(torch.outer(f, f) for f in head.features(x))
    torch.testing.assert_close(head.moment - before, expected)
    assert head.total - total == 7


def test_it_is_solved_once_after_an_update(head, draw, monkeypatch):
    solved = []
    monkeypatch.setattr(head, "solve", lambda *sums, solve=head.solve: (solved.append(1), solve(*sums))[1])
    for update in (True, False, True):
        if update:
            head.update(*samples(3, draw))
        first, again = head.logits(samples(5, draw)[0]), head.logits(samples(5, draw)[0])
        assert first.shape == again.shape
    assert len(solved) == 2


def test_a_block_that_fails_changes_no_bit(head, draw):
    x, _ = samples(8, draw)
    state, logits = {k: v.clone() for k, v in head.state_dict().items()}, head.logits(x)
    with pytest.raises(KeyError), Undo([head]) as undo:
        undo.save_rows(torch.arange(3))
        head.add_rows(1)
        head.update(*samples(9, draw))
        head.logits(x)
        raise KeyError
    assert all(torch.equal(value, state[name]) for name, value in head.state_dict().items())
    assert torch.equal(head.logits(x), logits)


def test_a_block_that_ends_well_gives_what_there_is_without_one(head, draw):
    x, more = samples(8, draw)[0], samples(9, draw)
    with Undo([head]):
        head.update(*more)
        inside = head.logits(x)
    torch.testing.assert_close(head.logits(x), inside)
    assert head._waiting is None and head.total == 39
    assert head.moment.diagonal().min() > 0


def test_nothing_of_the_last_class_stays(head, draw):
    head.logits(samples(1, draw)[0])
    for _ in range(3):
        head.remove_row(0)
    assert not head.moment.any() and head.total == 0
    assert head.logits(torch.ones(2, 4)).shape == (2, 0)


def real_digits():
    """Images ``(400, 1, 8, 8)`` and ``(300, 1, 8, 8)`` uint8 with labels."""
    images, labels = load_digits(return_X_y=True)
    x, y = torch.from_numpy(images * 15).to(torch.uint8).view(-1, 1, 8, 8), torch.from_numpy(labels).long()
    return (x[:400], y[:400]), (x[400:700], y[400:700])


COPYING = {
    "lda": lambda: LDAHead(64),
    "ridge": lambda: RidgeHead(64, projection=0),
    "projected ridge": lambda: RidgeHead(64, projection=300),
}


@pytest.mark.parametrize("name", COPYING)
@pytest.mark.parametrize("passes", [2, 5])
def test_images_that_come_again_change_no_prediction(name, passes):
    (x, y), (test, _) = real_digits()
    heads = [COPYING[name]() for _ in range(3)]
    for head, times, told in zip(heads, (1, passes, passes), (True, True, False), strict=True):
        head.add_rows(10)
        for _ in range(times):
            for part in torch.randperm(len(x)).split(10):
                head.update(x[part].flatten(1) / 255, y[part], x[part] if told else None)
    once, again, as_new = (head.logits(test.flatten(1) / 255) for head in heads)
    torch.testing.assert_close(again, once, rtol=1e-3, atol=1e-3 * once.std().item())
    assert (as_new - once).abs().max() > 1e-2 * once.std()


def test_a_ridge_head_is_as_good_after_two_passes_as_after_one():
    """The random features of 400 digits are fitted closely: where copies are evidence, no penalty is chosen."""
    (x, y), (test, truth) = real_digits()
    right = {}
    for told in (True, False):
        head = RidgeHead(64, projection=500)
        head.add_rows(10)
        for seen in (1, 2):
            head.update(x.flatten(1) / 255, y, x if told else None)
            right[told, seen] = (head.logits(test.flatten(1) / 255).argmax(1) == truth).float().mean().item()
    assert right[True, 2] >= right[True, 1] - 0.005
    assert right[False, 2] < right[False, 1] - 0.02


def test_sums_without_the_count_are_taken_to_be_of_different_images():
    (x, y), (test, _) = real_digits()
    told, untold = RidgeHead(64, projection=0), RidgeHead(64, projection=0)
    for head, images in ((told, x), (untold, None)):
        head.add_rows(10)
        head.update(x.flatten(1) / 255, y, images)
    old = told.state_dict() | {"distinct.buckets": torch.zeros(2**14, dtype=torch.int32)}
    loaded = RidgeHead(64, projection=0)
    loaded.load_state_dict(old)
    assert torch.equal(loaded.logits(test.flatten(1) / 255), untold.logits(test.flatten(1) / 255))
    loaded.update(x.flatten(1) / 255, y, x)  # copies among the new ones are told from then on
    loaded.update(x.flatten(1) / 255, y, x)
    assert loaded.total == 1200 and loaded.distinct.estimate().item() == pytest.approx(390, abs=12)


def test_a_head_that_forgot_its_last_class_counts_anew():
    head = LDAHead(64)
    (x, y), _ = real_digits()
    head.add_rows(1)
    head.update(x.flatten(1) / 255, torch.zeros_like(y), x)
    head.remove_row(0)
    assert head.distinct.total() == 0


def test_the_moment_without_classes_is_less_the_part_of_their_means(draw):
    head = LDAHead(4)
    head.add_rows(4)
    x, y = torch.randn(9, 4, generator=draw), torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 2])  # none of class 3
    head.update(x, y)
    x = x.double()
    expected = x.T @ x
    for row, count in ((0, 4), (2, 1)):
        mean = x[y == row].mean(0)
        expected -= count * torch.outer(mean, mean)
    torch.testing.assert_close(head.moments_without(torch.tensor([0, 2, 3]))["moment"], expected)


def test_prepared_it_is_solved_once_only(head, draw, monkeypatch):
    x, _ = samples(5, draw)
    head.prepare()
    monkeypatch.setattr(head, "solve", None)
    head.prepare()
    assert head.logits(x).shape == (5, 3)


def test_a_current_solution_goes_with_the_state_and_no_other(head, draw, request):
    make, (x, rows) = HEADS[request.node.callspec.params["head"]], samples(5, draw)
    assert not [name for name in head.state_dict() if "solution" in name]
    expected, state = head.logits(x), head.state_dict()
    assert len([name for name in state if "solution" in name]) == 5
    other = make()
    other.load_state_dict(state)
    other.solve = None
    assert torch.equal(other.logits(x), expected)
    head.update(x, rows)
    assert not [name for name in head.state_dict() if "solution" in name]
    other.load_state_dict(head.state_dict())
    assert other._solution is None


def test_a_solution_of_fewer_classes_than_there_are_is_saved_and_loaded(head, draw, request):
    x, _ = samples(5, draw)
    head.logits(x)
    head.add_rows(2)
    other = HEADS[request.node.callspec.params["head"]]()
    other.load_state_dict(head.state_dict())
    assert torch.equal(other.logits(x), head.logits(x)) and other.logits(x).shape == (5, 5)


def test_a_solution_that_does_not_fit_is_named(head, draw, request):
    head.logits(samples(5, draw)[0])
    state, other = head.state_dict(), HEADS[request.node.callspec.params["head"]]()
    with pytest.raises(RuntimeError, match="solution_weight is torch.float64 .3, 2."):
        other.load_state_dict(state | {"solution_weight": torch.zeros(3, 2).double()})
    with pytest.raises(RuntimeError, match="a solution lacks solution_bias"):
        other.load_state_dict({name: value for name, value in state.items() if name != "solution_bias"})
    assert other._solution is None


def test_moves_and_other_precisions_leave_the_solution(head, draw):
    x, _ = samples(5, draw)
    expected = head.logits(x)
    head.half().to("cpu").double()
    head.solve = None
    assert torch.equal(head.logits(x), expected) and head._solution.weight.dtype == torch.float64


def test_the_bytes_of_a_solution_are_told_before_there_is_one(head, draw):
    def size():
        return sum(tensor.nbytes for tensor in head.state_dict().values())

    before, more = size(), head.solution_bytes(0)
    head.prepare()
    assert size() - before == more > 0 and head.solution_bytes(0) == 0
    assert head.solution_bytes(2) == 2 * 8 * (len(head.moment) + 2)
