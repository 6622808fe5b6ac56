"""A training step asks the device nothing: here on the device "meta", which runs everything and has no answers."""

from contextlib import contextmanager
from copy import deepcopy

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from avalanche_f2ocl.state import late_answer
from tests.contracts.strategies import STRATEGIES

aten = torch.ops.aten


class NoWaiting(TorchDispatchMode):
    """Refuses copies from the host that wait; what asks the device raises by itself."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is aten._to_copy.default:
            sources = [] if kwargs.get("non_blocking") else [args[0]]
        else:
            sources = [args[1]] if func is aten.copy_.default and args[2:] != (True,) else []
        if any(source.device.type == "cpu" and source.dim() for source in sources) and result.is_meta:
            raise RuntimeError(f"the host waits for a copy of {tuple(sources[0].shape)} to the device")
        return result


class NoLists(TorchFunctionMode):
    """Refuses indices that the host would first copy to the device."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__) and args[0].is_meta:
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            if any(isinstance(part, list) for part in index):
                raise RuntimeError(f"the host waits for a copy of the list {args[1]} to the device")
        return func(*args, **(kwargs or {}))


@contextmanager
def no_waiting():
    with NoWaiting(), NoLists():
        yield


def on_meta(make, vit):
    """A strategy there, whose optimiser has the parameters that are there."""
    strategy = make(backbone=deepcopy(vit), evaluator=None, device="cpu")
    names = {parameter: name for name, parameter in strategy.model.named_parameters()}
    strategy.model.to("meta")
    there = dict(strategy.model.named_parameters())
    for group in getattr(strategy.model.optimizer, "param_groups", ()):
        group["params"] = [there[names[parameter]] for parameter in group["params"]]
    if isinstance(strategy.optimizer, torch.optim.SGD):
        strategy.optimizer.step = lambda: None  # torch's takes no sparse gradients on this device
    strategy.device, strategy.is_training = torch.device("meta"), True
    return strategy


def move_unchecked(strategy):
    images, labels = strategy.mbatch
    strategy.mb_labels = labels
    strategy.mbatch = [tensor.to("meta", non_blocking=True) for tensor in strategy.mbatch]
    strategy.checked_minibatch = tuple(strategy.mbatch)


def step(strategy, images, labels):
    strategy.dataloader = [[images, labels]]
    strategy.training_epoch()


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_training_step_does_not_wait_for_the_device(name, small_vit, images, labels, monkeypatch):
    monkeypatch.setattr(late_answer, "LATE", {"meta"})
    monkeypatch.setattr(late_answer, "ask", lambda flag: lambda: False)
    strategy = on_meta(STRATEGIES[name], small_vit)
    monkeypatch.setattr(strategy, "_check_minibatch", lambda: move_unchecked(strategy))
    with no_waiting():
        step(strategy, images, labels.abs())
        step(strategy, images, labels.abs() % 7)  # a new class, known ones, and a state of the optimiser
        if name == "lwf":
            outputs = torch.ones(2, 5, device="meta")
            strategy.distillation.lwf._distillation_loss(outputs, outputs[:, :3], {0, 1, 2})
    assert strategy.model.batches == 2
    for state in getattr(strategy.model.optimizer, "state", {}).values():
        assert all(tensor.device.type == "meta" for tensor in state.values())


@pytest.mark.parametrize(
    "wait",
    [
        lambda x: x.max().item(),
        lambda x: bool((x > 0).all()),
        lambda x: x.nonzero(),
        lambda x: x.cpu(),
        lambda x: x[:, [0, 1]],
        lambda x: x.copy_(torch.ones(2, 2)),
    ],
)
def test_what_waits_is_noticed(wait):
    with no_waiting(), pytest.raises((RuntimeError, NotImplementedError)):
        wait(torch.ones(2, 2, device="meta"))
