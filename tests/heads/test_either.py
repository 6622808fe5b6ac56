import pytest
import torch
from torch.nn import functional as F

from avalanche_f2ocl.heads import EitherHead, NCMHead

ROWS = torch.arange(60) % 3


def make(dim=3):
    return EitherHead([NCMHead(dim), NCMHead(dim)])


def told(x, means, known, rows):
    """Which samples are right among known classes of their mini-batch, sample by sample."""
    right = []
    for vector, row in zip(x, rows.tolist(), strict=True):
        candidates = [c for c in sorted(set(rows.tolist())) if c in known]
        scores = [F.cosine_similarity(vector, means[c], dim=0).item() for c in candidates]
        right.append(row in known and candidates[scores.index(max(scores))] == row)
    return right


def test_counts_are_those_of_a_loop(draw):
    x = torch.eye(3)[ROWS].repeat(1, 2) + torch.randn(60, 6, generator=draw)
    head = make()
    head.add_rows(3)
    first_alone = second_alone = 0
    for start in range(0, 60, 4):  # classes come in turn, the last one twice: mini-batches of unequal classes
        part, rows = x[start : start + 4], ROWS[start : start + 4]
        seen, labels = x[:start], ROWS[:start]
        known = set(labels.tolist())
        means = {c: seen[labels == c].mean(0) for c in known}
        first = told(part[:, :3], {c: m[:3] for c, m in means.items()}, known, rows)
        second = told(part[:, 3:], {c: m[3:] for c, m in means.items()}, known, rows)
        first_alone += sum(a and not b for a, b in zip(first, second, strict=True))
        second_alone += sum(b and not a for a, b in zip(first, second, strict=True))
        head.judge(part, rows)
        head.update(part, rows)
    assert (head.first_alone.sum(), head.second_alone.sum()) == (first_alone, second_alone)
    assert first_alone > 0 and second_alone > 0


@pytest.mark.parametrize("better", [0, 1])
def test_the_first_has_a_say_only_where_it_is_better(draw, better):
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


@pytest.mark.parametrize(("first", "second", "weight"), [(4, 0, 0.0), (5, 0, 0.5), (20, 10, 0.0), (22, 10, 0.5)])
def test_more_than_two_deviations_are_wanted(first, second, weight):
    head = make()
    head.add_rows(2)
    head.first_alone[1], head.second_alone[0] = first, second
    assert head.weights().tolist() == [weight, 1 - weight]


def test_a_class_that_is_removed_takes_its_counts_along():
    head = make()
    head.add_rows(2)
    head.first_alone[1] = 9
    head.remove_row(1)
    assert head.weights().tolist() == [0, 1]


def test_two_heads_are_wanted():
    with pytest.raises(ValueError, match="heads: 1 heads; there must be two"):
        EitherHead([NCMHead(3)])
