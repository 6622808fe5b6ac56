"""The checks that this package runs on every head and every strategy, for your own; they need no test framework.

``check_head`` and ``check_strategy`` run all checks and raise the first ``AssertionError``. A test framework may
run the checks one by one: ``HEAD_CHECKS`` and ``STRATEGY_CHECKS`` hold functions, each of which takes the function that
makes the head or strategy.
"""

from collections.abc import Callable, Collection
from typing import Any

import torch

from avalanche_f2ocl.arguments import check_choice
from avalanche_f2ocl.testing.forgetting import FORGETTING
from avalanche_f2ocl.testing.heads import HEAD_CHECKS, MakeHead
from avalanche_f2ocl.testing.loop import LOOP
from avalanche_f2ocl.testing.outputs import OUTPUTS
from avalanche_f2ocl.testing.refusals import EVERY_FAILURE, REFUSALS
from avalanche_f2ocl.testing.rehearsal import REHEARSAL
from avalanche_f2ocl.testing.running import Make, small_vit
from avalanche_f2ocl.testing.saving import SAVING

__all__ = ["HEAD_CHECKS", "STRATEGY_CHECKS", "check_head", "check_strategy"]

STRATEGY_CHECKS = (*LOOP, *OUTPUTS, *REFUSALS, *EVERY_FAILURE, *FORGETTING, *REHEARSAL, *SAVING)


def check_head(make: MakeHead, skip: Collection[str] = ()) -> None:
    """Checks a head: its sums, the order of samples, growth, forgetting, undo and saving.

    Args:
        make: a class or function that makes a new head, given the number of features.
        skip: names of checks that are left out.

    Raises:
        AssertionError: the head fails a check; the traceback names the check.
        ValueError: there is no check of such a name.

    Example:
        >>> from avalanche_f2ocl.heads import NCMHead
        >>> check_head(NCMHead)
    """
    _run(HEAD_CHECKS, make, skip)


def check_strategy(make: Make, skip: Collection[str] = ()) -> None:
    """Checks a strategy in Avalanche's loop: callbacks, outputs, bad input, forgetting, rehearsal and files.

    Args:
        make: makes a new strategy and passes its keywords on to
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`; ``backbone`` is a ViT of 32 px with random weights.
        skip: names of checks that are left out.

    Raises:
        AssertionError: the strategy fails a check; the traceback names the check.
        ValueError: there is no check of such a name.

    Example:
        >>> from avalanche_f2ocl import FrozenBackbone
        >>> check_strategy(lambda **loop: FrozenBackbone(head="lda", **loop))  # doctest: +SKIP
    """
    _run(STRATEGY_CHECKS, on_small_vit(make), skip)


def on_small_vit(make: Make) -> Make:
    """Wraps ``make`` so that a small backbone and no evaluator are the defaults."""
    return lambda **options: make(**{"backbone": small_vit(), "evaluator": None, **options})


def _run(checks: Collection[Callable[[Any], None]], make: Callable[..., Any], skip: Collection[str]) -> None:
    names = tuple(check.__name__ for check in checks)
    for name in skip:
        check_choice("skip", name, names)
    for check in checks:
        if check.__name__ not in skip:
            with torch.random.fork_rng():
                torch.manual_seed(0)
                check(make)
