import pytest
import torch

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
