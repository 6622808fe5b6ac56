import pytest

from avalanche_f2ocl.arguments import (
    check_choice,
    check_int,
    check_names,
    check_number,
    check_positive,
    check_positive_int,
    check_share,
)


@pytest.mark.parametrize(
    "check, right, wrong",
    [
        (check_number, [0, -1.5, 3], [("1", TypeError), (True, TypeError), (None, TypeError)]),
        (check_share, [0, 0.5, 1], [(-0.1, ValueError), (1.1, ValueError), ("0.5", TypeError)]),
        (check_positive, [0.1, 7], [(0, ValueError), (float("inf"), ValueError), (float("nan"), ValueError)]),
        (check_int, [-4, 0, 9], [(1.0, TypeError), (True, TypeError)]),
        (check_positive_int, [1, 9], [(0, ValueError), (-1, ValueError), (1.0, TypeError), (False, TypeError)]),
    ],
)
def test_what_is_right_passes_and_what_is_wrong_is_named(check, right, wrong):
    for value in right:
        check("x", value)
    for value, error in wrong:
        with pytest.raises(error, match=f"^x={value!r}: must be"):
            check("x", value)


def test_choices():
    check_choice("x", "a", ("a", "b"))
    with pytest.raises(ValueError, match="x='c': allowed are 'a', 'b'"):
        check_choice("x", "c", ("a", "b"))


def test_names():
    check_names("It", ["lr"], {"lr", "seed"})
    with pytest.raises(TypeError, match="It has no option 'sed': did you mean 'seed'?"):
        check_names("It", ["lr", "sed"], {"lr", "seed"})
    with pytest.raises(TypeError, match="It has no option 'xyz': there are lr, seed"):
        check_names("It", ["xyz"], {"lr", "seed"})
