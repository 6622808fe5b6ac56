"""Bad mini-batches of every kind, and checks that a strategy is not harmed by them.

A strategy learns some good mini-batches, then meets a bad one, then learns a last good one. It must refuse the
bad one with the right error, stay bit for bit as it was before, and learn the last one like a twin that never met the
bad one.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import torch
from torch import Tensor

from avalanche_f2ocl.testing.failures import Calls, FailingLoader, FailingPlugin, Failure

CLASSES = 6
CALLBACKS = (
    "before_training_iteration", "before_forward", "after_forward", "before_backward", "after_backward",
    "before_update", "after_update", "after_training_iteration",
)  # fmt: skip

DATA: dict[str, tuple[Callable[[Tensor, Tensor], tuple], type[Exception]]] = {
    "NaN": (lambda x, y: (x / 255 * float("nan"), y), ValueError),
    "infinite": (lambda x, y: (x / 0.0, y), ValueError),
    "range": (lambda x, y: (x * 2.0, y), ValueError),
    "rank": (lambda x, y: (x[:, 0], y), ValueError),
    "channels": (lambda x, y: (x[:, :2], y), ValueError),
    "empty": (lambda x, y: (x[:0], y[:0]), ValueError),
    "no images": (lambda x, y: (["image"], y), TypeError),
    "images on meta": (lambda x, y: (x.to("meta"), y), ValueError),
    "float labels": (lambda x, y: (x, y.float()), TypeError),
    "labels on meta": (lambda x, y: (x, y.to("meta")), ValueError),
    "negative labels": (lambda x, y: (x, y - CLASSES), ValueError),
    "label missing": (lambda x, y: (x, y[1:]), ValueError),
    "no labels": (lambda x, y: (x,), ValueError),
}
"""By kind: how images and labels are spoilt, and the expected error."""


KINDS = (
    *DATA,
    "loader",
    *(f"{callback} {place}" for callback in CALLBACKS for place in ("first", "last")),
    "memory in encode",
    "memory in step",
    "memory in growth",
)


@dataclass(frozen=True)
class Case:
    """One bad mini-batch in a stream.

    Args:
        before: class ids of the good mini-batches before the bad one.
        bad: class ids of the bad mini-batch, before ``kind`` spoils it.
        after: class ids of the good mini-batch after the bad one.
        kind: one of ``KINDS``.
        call: number of the forward pass that runs out of memory, modulo the number of passes.
        seed: seed of the images.
    """

    before: tuple[tuple[int, ...], ...]
    bad: tuple[int, ...]
    after: tuple[int, ...]
    kind: str
    call: int = 0
    seed: int = 0

    def minibatch(self, number: int, labels: Sequence[int]) -> list[Tensor]:
        """Images of random noise with the given labels."""
        draw = torch.Generator().manual_seed(1000 * self.seed + number)
        images = torch.randint(0, 256, (len(labels), 3, 32, 32), dtype=torch.uint8, generator=draw)
        return [images, torch.tensor(labels)]


def random_case(seed: int, kind: str | None = None) -> Case:
    """A case drawn from a seed, including its kind unless that is given."""
    draw = Random(seed)

    def labels():
        return tuple(draw.randrange(CLASSES) for _ in range(draw.randint(2, 4)))

    before = tuple(labels() for _ in range(draw.randint(0, 2)))
    return Case(before, labels(), labels(), kind or draw.choice(KINDS), draw.randrange(4), seed)


def feed(strategy, loader: Sequence) -> None:
    """Trains a strategy on mini-batches, without an experience around them."""
    strategy.is_training = True
    strategy.dataloader = loader
    strategy.training_epoch()


def state(strategy) -> dict[str, Any]:
    """A copy of everything that a strategy has learned, without the frozen backbone."""
    model = strategy.model
    teachers = [plugin.lwf for plugin in strategy.plugins if hasattr(plugin, "lwf")]
    return deepcopy(
        {
            "model": {name: t for name, t in model.state_dict().items() if not name.startswith("backbone.")},
            "tables": {
                name: tensor.detach()
                for child in model.children()
                if child is not model.backbone
                for name, tensor in [*child.named_parameters(), *child.named_buffers()]
            },
            "rows": model.classes.rows(torch.arange(CLASSES)),
            "batches": model.batches,
            "optimizer": getattr(strategy.optimizer, "state_dict", dict)(),
            "teachers": [teacher.prev_model and dict(teacher.prev_model.state_dict()) for teacher in teachers],
            "taught": [teacher.prev_classes_by_task for teacher in teachers],
        }
    )


def same(one: Any, other: Any) -> bool:
    """Whether two states are equal bit for bit."""
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def harm(make: Callable[..., Any], case: Case) -> str | None:
    """Describes the harm that a bad mini-batch did to a strategy; None if there is none.

    Args:
        make: makes a strategy from its options.
        case: the mini-batches.
    """
    callback, _, place = case.kind.partition(" ")
    plugin = FailingPlugin(callback) if callback in CALLBACKS else None
    strategy, twin = (make(evaluator=None, device="cpu") for _ in range(2))
    if plugin is not None:
        strategy.plugins.insert(0 if place == "first" else len(strategy.plugins), plugin)
    for number, labels in enumerate(case.before):
        for one in (strategy, twin):
            feed(one, [case.minibatch(number, labels)])
    last = case.minibatch(100, case.after)
    with Calls(twin.model.backbone, "_run") as encodes:
        feed(twin, [last])
    before = state(strategy)

    bad = case.minibatch(99, case.bad)
    failing, loader = None, cast(Any, [bad])
    expected: type[Exception] = torch.cuda.OutOfMemoryError
    if case.kind in DATA:
        spoil, expected = DATA[case.kind]
        loader = [list(spoil(*bad))]
    elif case.kind == "loader":
        loader, expected = FailingLoader(), Failure
    elif plugin is not None:
        expected, plugin.armed = Failure, True
    elif case.kind == "memory in encode":
        failing = Calls(strategy.model.backbone, "_run", fail_at=case.call % encodes.count)
    elif case.kind == "memory in step":
        failing = Calls(strategy.optimizer, "step", fail_at=0)
    else:
        bad[1] += CLASSES  # new classes
        failing = Calls(strategy.model.head, "add_rows", fail_at=0)
    try:
        if failing is None:
            feed(strategy, loader)
        else:
            with failing:
                feed(strategy, loader)
    except expected:
        pass
    except Exception as error:
        return f"raised {type(error).__name__} ({error}), not {expected.__name__}"
    else:
        return "was not refused"
    if plugin is not None:
        plugin.armed = False
    kept = [
        name
        for name in ("mbatch", "mb_output", "mb_labels", "checked_minibatch", "training_batch", "undo")
        if getattr(strategy, name) is not None
    ]
    if kept:
        return f"is still held: {', '.join(kept)}"
    if case.kind != "loader" and any(parameter.grad is not None for parameter in strategy.model.parameters()):
        return "left gradients"
    if not same(state(strategy), before):
        return "changed what was learned"
    feed(strategy, [last])
    return None if same(state(strategy), state(twin)) else "changed how the next one is learned"


def refusals(make: Callable[..., Any], cases: Sequence[Case]) -> tuple[int, int]:
    """The number of bad mini-batches that a strategy refused with its state intact, and the number that it met.

    Example:
        >>> from avalanche_f2ocl import ViTNCM
        >>> refusals(lambda **options: ViTNCM(backbone="micro_vit", **options), [random_case(0), random_case(1)])
        (2, 2)
    """
    return sum(harm(make, case) is None for case in cases), len(cases)
