import pytest
import torch
from torch.nn import functional as F

from avalanche_f2ocl.heads import EitherHead, NCMHead

ROWS = torch.arange(60) % 3


def make(dim=3):
    return EitherHead([NCMHead(dim), NCMHead(dim)])


def told(x, means, known, rows, *parts):
    """Which samples are right among known classes of their mini-batch by sums over parts of the vectors."""
    right = []
    for vector, row in zip(x, rows.tolist(), strict=True):
        candidates = [c for c in sorted(set(rows.tolist())) if c in known]
        scores = [sum(F.cosine_similarity(vector[p], means[c][p], dim=0).item() for p in parts) for c in candidates]
        right.append(row in known and candidates[scores.index(max(scores))] == row)
    return right


def test_counts_are_those_of_a_loop(draw):
    x = torch.eye(3)[ROWS].repeat(1, 2) + torch.randn(60, 6, generator=draw)
    head = make()
    head.add_rows(3)
    helped = harmed = 0
    for start in range(0, 60, 4):  # classes come in turn, the last one twice: mini-batches of unequal classes
        part, rows = x[start : start + 4], ROWS[start : start + 4]
        seen, labels = x[:start], ROWS[:start]
        known = set(labels.tolist())
        means = {c: seen[labels == c].mean(0) for c in known}
        both = told(part, means, known, rows, slice(3), slice(3, 6))
        alone = told(part, means, known, rows, slice(3, 6))
        helped += sum(a and not b for a, b in zip(both, alone, strict=True))
        harmed += sum(b and not a for a, b in zip(both, alone, strict=True))
        head.judge(part, rows)
        head.update(part, rows)
    assert (head.helped.sum(), head.harmed.sum()) == (helped, harmed)
    assert helped > 0 and harmed > 0


@pytest.mark.parametrize("better", [0, 1])
def test_the_first_has_a_say_only_where_it_helps(draw, better):
    good = torch.eye(3)[ROWS] + 0.1 * torch.randn(60, 3, generator=draw)
    noise = torch.randn(60, 3, generator=draw)
    x = torch.cat([noise, good] if better else [good, noise], 1)
    head = make()
    head.add_rows(3)
    for start in range(0, 60, 6):
        head.judge(x[start : start + 6], ROWS[start : start + 6])
        head.update(x[start : start + 6], ROWS[start : start + 6])
    parts = [part.logits(x[:, slice_]) for part, slice_ in zip(head.heads, (slice(3), slice(3, 6)), strict=True)]
    expected = parts[1] if better else (parts[0] + parts[1]) / 2
    torch.testing.assert_close(head.logits(x), expected)


@pytest.mark.parametrize(("helped", "harmed", "weight"), [(9, 0, 0.0), (10, 0, 0.5), (30, 10, 0.5), (29, 11, 0.0)])
def test_more_than_three_deviations_are_wanted(helped, harmed, weight):
    head = make()
    head.add_rows(2)
    head.helped[1], head.harmed[0] = helped, harmed
    assert head.weights().tolist() == [weight, 1 - weight]


def test_a_class_that_is_removed_takes_its_counts_along():
    head = make()
    head.add_rows(2)
    head.helped[1] = 10
    head.remove_row(1)
    assert head.weights().tolist() == [0, 1]


def test_two_heads_are_wanted():
    with pytest.raises(ValueError, match="heads: 1 heads; there must be two"):
        EitherHead([NCMHead(3)])
