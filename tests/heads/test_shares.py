import pytest
import torch

from avalanche_f2ocl.heads.shares import BINS, Range, quantile, share_below


def test_shares_are_those_of_a_loop(draw):
    span = Range(-3.0, 3.0)
    values, weights = torch.randn(200, generator=draw), torch.randint(1, 9, (200,), generator=draw)
    histogram = torch.zeros(BINS, dtype=torch.int64).index_add(0, span.places(values).long(), weights)
    for value in (-1.5, 0.0, 0.7):
        by_hand = sum(w.item() for v, w in zip(values, weights, strict=True) if v < value) / weights.sum().item()
        assert share_below(histogram, span.places(torch.tensor([value]))).item() == pytest.approx(by_hand, abs=0.03)


def test_a_quantile_is_the_inverse_of_a_share(draw):
    histogram = torch.randint(0, 9, (BINS,), generator=draw)
    for share in (0.01, 0.05, 0.5, 0.99):
        place = torch.tensor([quantile(histogram, share)])
        assert share_below(histogram, place).item() == pytest.approx(share, abs=1e-6)


def test_values_outside_the_range_count_as_its_ends():
    places = Range(0.0, 1.0).places(torch.tensor([-torch.inf, -1.0, 1.0, 7.0, torch.inf]))
    assert places.long().tolist() == [0, 0, BINS - 1, BINS - 1, BINS - 1]


def test_a_value_is_the_inverse_of_a_place():
    span = Range(-7.0, 1.0)
    assert span.value(span.places(torch.tensor(-2.5)).item()) == pytest.approx(-2.5)
