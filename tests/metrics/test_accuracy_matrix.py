import math
import warnings

import numpy as np
import pytest

from avalanche_f2ocl.metrics import average_accuracy, forgetting

# Group 1 gets better before it gets worse; what stands above the diagonal must not count.
T = [
    [0.80, 0.99, 0.99, 0.99],
    [0.90, 0.60, 0.99, 0.99],
    [0.70, 0.50, 0.90, 0.99],
    [0.60, 0.55, 0.40, 1.00],
]


def test_by_hand():
    assert average_accuracy(T) == pytest.approx((0.60 + 0.55 + 0.40 + 1.00) / 4)
    assert average_accuracy(T, samples=[10, 20, 30, 40]) == pytest.approx(0.1 * 0.6 + 0.2 * 0.55 + 0.3 * 0.4 + 0.4)
    # max over 0.8, 0.9, 0.7; over 0.6, 0.5; over 0.9
    assert forgetting(T) == pytest.approx(((0.90 - 0.60) + (0.60 - 0.55) + (0.90 - 0.40)) / 3)


def test_nan_above_the_diagonal_is_ignored():
    lower = np.where(np.tril(np.ones((4, 4))) == 1, T, np.nan)
    assert average_accuracy(lower) == average_accuracy(T) and forgetting(lower) == forgetting(T)


def test_improvement_is_negative_forgetting():
    assert forgetting([[0.5, 0], [0.7, 1]]) == pytest.approx(-0.2)


def test_one_group():
    assert average_accuracy([[0.3]]) == 0.3 and math.isnan(forgetting([[0.3]]))


@pytest.mark.parametrize("bad", [[], [0.5], [[0.5, 0.5]], [[[0.5]]]], ids=str)
def test_no_square_matrix(bad):
    for function in (average_accuracy, forgetting):
        with pytest.raises(ValueError, match="shape"):
            function(bad)
    with pytest.raises(ValueError, match="samples"):
        average_accuracy([[0.5]], samples=[1, 2])


def test_a_single_group_has_no_forgetting_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(forgetting([[0.5]]))
