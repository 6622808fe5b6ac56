import pytest
import torch

from avalanche_f2ocl.heads import EnsembleHead, LDAHead, RidgeHead
from avalanche_f2ocl.heads.ensemble import vote_weights


def make():
    return LDAHead(3, shrinkage=0.1), RidgeHead(3, projection=0)


def test_logits_are_the_sum_of_heads_that_learn_alone(draw):
    x, rows = torch.randn(40, 6, generator=draw), torch.arange(40) % 4
    ensemble, alone = EnsembleHead(make(), vote="equal"), make()
    ensemble.add_rows(4)
    for start in range(0, 40, 8):
        ensemble.update(x[start : start + 8], rows[start : start + 8])
    expected = 0
    for head, part in zip(alone, (x[:, :3], x[:, 3:]), strict=True):
        head.add_rows(4)
        head.update(part, rows)
        expected = expected + head.logits(part)
    torch.testing.assert_close(ensemble.logits(x), expected)
    torch.testing.assert_close(ensemble.means()[2], x[rows == 2].mean(0))


def test_the_better_head_has_more_to_say(draw):
    """One part tells the classes, the other is noise."""
    rows = torch.arange(60) % 3
    x = torch.cat(
        [torch.eye(3)[rows] + 0.1 * torch.randn(60, 3, generator=draw), torch.randn(60, 5, generator=draw)], 1
    )
    head = EnsembleHead([RidgeHead(3, projection=0), RidgeHead(5, projection=0)])
    head.add_rows(3)
    head.update(x, rows)
    weights = head.weights()
    torch.testing.assert_close(weights, vote_weights(torch.stack([part.evidence() for part in head.heads])))
    assert weights[0] > 1.99 and weights[1] < 0.01
    parts = [part.logits(x[:, slice_]) for part, slice_ in zip(head.heads, (slice(3), slice(3, 8)), strict=True)]
    torch.testing.assert_close(head.logits(x), (weights[0] * parts[0] + weights[1] * parts[1]).float())


def test_weights_by_hand():
    # Odds of 1, 2 and 0: to the fourth power 1, 16 and 0, on average 17 / 3.
    weights = vote_weights(torch.tensor([1 / 2, 2 / 3, 0], dtype=torch.float64))
    torch.testing.assert_close(weights, torch.tensor([3 / 17, 48 / 17, 0], dtype=torch.float64))


def test_heads_that_know_nothing_have_the_same_say():
    assert vote_weights(torch.zeros(2, dtype=torch.float64)).tolist() == [1, 1]


def test_an_unknown_vote_is_named():
    with pytest.raises(ValueError, match="vote='most': allowed are 'evidence', 'equal'"):
        EnsembleHead(make(), vote="most")


def test_prepared_it_solves_nothing_at_a_prediction(draw, monkeypatch):
    x, ensemble = torch.randn(40, 6, generator=draw), EnsembleHead(make())
    ensemble.add_rows(4)
    ensemble.update(x, torch.arange(40) % 4)
    ensemble.prepare()
    for head in ensemble.heads:
        monkeypatch.setattr(head, "solve", None)
    assert ensemble.logits(x).shape == (40, 4)


def test_copies_are_found_by_every_head(draw):
    images = torch.randint(0, 256, (20, 3, 16, 16), dtype=torch.uint8, generator=draw)
    ensemble = EnsembleHead(make())
    ensemble.add_rows(4)
    for _ in range(3):
        ensemble.update(torch.randn(20, 6, generator=draw), torch.arange(20) % 4, images)
    assert [round(head.distinct.estimate().item()) for head in ensemble.heads] == [20, 20]
    assert [head.total.item() for head in ensemble.heads] == [60, 60]
