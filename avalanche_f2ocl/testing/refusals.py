"""Checks that a strategy refuses bad input and options, and is unchanged afterwards."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from avalanche_f2ocl.testing.bad_batches import KINDS, harm, random_case
from avalanche_f2ocl.testing.running import (
    Make,
    as_tensors,
    assert_same_state,
    few_digits,
    learned,
    raises,
    train_online,
)

SPOILT: tuple[tuple[Callable[[Tensor, Tensor], tuple], type[Exception], str], ...] = (
    (lambda x, y: (x.float() * float("nan"), y), ValueError, "NaN"),
    (lambda x, y: (x[:, :, 0], y), ValueError, r"\(B, C, H, W\)"),
    (lambda x, y: (x.repeat(1, 2, 1, 1), y), ValueError, "2 channels"),
    (lambda x, y: (x.float(), y), ValueError, "inputs='normalised'"),
    (lambda x, y: (x, y.float()), TypeError, "float32"),
    (lambda x, y: (x, y - 10), ValueError, "labels hold -.*0 or more"),
)
"""How a mini-batch is spoilt, the expected error, and a pattern of its message."""

WRONG: tuple[tuple[dict[str, Any], type[Exception]], ...] = (
    ({"train_mb_size": 0}, ValueError),
    ({"eval_mb_size": 1.5}, TypeError),
    ({"train_epochs": -1}, ValueError),
    ({"normalise": "none"}, ValueError),
    ({"inputs": "raw"}, ValueError),
    ({"readout": "mean"}, ValueError),
    ({"no_such_option": 1}, TypeError),
    ({"backbone": "vit_nonsense"}, ValueError),
)
"""Options that are not allowed, and the expected error."""


def a_bad_minibatch_is_named_and_nothing_changes(make: Make) -> None:
    """The images have a wrong dtype, rank or range, or the labels are no class ids."""
    digits = few_digits()
    strategy = train_online(make(), digits.train_stream[:1])
    before = learned(strategy.model)
    images, labels = as_tensors(digits.train_stream[1])
    strategy.is_training = True
    for spoil, error, message in SPOILT:
        strategy.dataloader = [list(spoil(images[:10], labels[:10]))]
        with raises(error, message):
            strategy.training_epoch()
        assert_same_state(learned(strategy.model), before)


def wrong_options_are_named(make: Make) -> None:
    """The error's message names the option."""
    for option, error in WRONG:
        with raises(error, next(iter(option))):
            make(**option)


def a_minibatch_that_fails_leaves_no_trace(make: Make) -> None:
    """It may fail by bad data, a plugin or lack of memory, see :mod:`avalanche_f2ocl.testing.bad_batches`."""
    for number, kind in enumerate(KINDS):
        harmed = harm(make, random_case(number, kind))
        assert harmed is None, f"a mini-batch that fails by {kind!r}: {harmed}"


REFUSALS = (a_bad_minibatch_is_named_and_nothing_changes, wrong_options_are_named)
EVERY_FAILURE = (a_minibatch_that_fails_leaves_no_trace,)
