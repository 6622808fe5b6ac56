from copy import deepcopy

import pytest
import torch

from avalanche_f2ocl import F2OCLStrategy, ViTNCM
from avalanche_f2ocl.safe_file import read_safe_file, write_safe_file
from avalanche_f2ocl.strategies.run_file import learned
from tests.helpers import train_online


def other_weights(vit):
    vit = deepcopy(vit)
    with torch.no_grad():
        vit.norm.weight[0] += 1e-3
    return vit


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda vit: ViTNCM(backbone=vit, evaluator=None), "is of F2OCLStrategy, not of ViTNCM"),
        (lambda vit: F2OCLStrategy(backbone=vit, evaluator=None), "prompt_length=3 there, 20 here"),
        (lambda vit: F2OCLStrategy(backbone=vit, evaluator=None, prompt_length=3, seed=1), "seed=0 there, 1 here"),
        (lambda vit: F2OCLStrategy(backbone=other_weights(vit), evaluator=None, prompt_length=3), "other weights"),
        (lambda vit: F2OCLStrategy(backbone="micro_vit", image_size=64, evaluator=None, prompt_length=3), "32 pixels"),
    ],
    ids=["strategy", "length", "seed", "weights", "size"],
)
def test_a_file_of_another_run_is_refused_and_nothing_loaded(make, message, saved, vit):
    strategy = make(vit)
    before = learned(strategy).tensors()
    with pytest.raises(ValueError, match=message):
        strategy.resume(saved)
    after = learned(strategy).tensors()
    assert before.keys() == after.keys() and all(torch.equal(before[n], after[n]) for n in before)
    assert not strategy.catching_up


SPOILT = {
    "prompts is .*float64": lambda t, v: t.update({"model.pool.prompts": t["model.pool.prompts"].double()}),
    "prompts is .*, expected": lambda t, v: t.update({"model.pool.prompts": t["model.pool.prompts"][:1]}),
    "in one of them only": lambda t, v: t.pop("model.keys.sums"),
    "one of them only": lambda t, v: t.update({"model.extra": torch.zeros(1)}),
    "occurs twice": lambda t, v: t["model.classes.ids"].fill_(7),
    "belongs to nothing": lambda t, v: t.update({"optimizer.pool.keys.step": torch.zeros(2)}),
    "has format 2": lambda t, v: v.update(format=2),
    "lacks \\['backbone', 'metrics'\\]": lambda t, v: (v.pop("metrics"), v.pop("backbone")),
    "has format None": lambda t, v: v.pop("format"),
}


@pytest.mark.parametrize("message", SPOILT)
def test_a_file_that_does_not_fit_is_refused_and_nothing_loaded(message, saved, vit):
    tensors, values = read_safe_file(saved)
    SPOILT[message](tensors, values)
    write_safe_file(saved, tensors, values)
    strategy = F2OCLStrategy(backbone=vit, evaluator=None, prompt_length=3)
    with pytest.raises(ValueError, match=message):
        strategy.resume(saved)
    assert len(strategy.model.classes) == 0 and not strategy.optimizer.state and not strategy.catching_up


def test_a_damaged_file_is_refused(saved, vit):
    saved.write_bytes(saved.read_bytes()[:-1])
    with pytest.raises(ValueError, match="damaged"):
        F2OCLStrategy.load(saved, backbone=vit, evaluator=None)


def test_a_file_that_would_leave_no_class_is_refused(vit, digits, path):
    strategy = train_online(F2OCLStrategy(backbone=vit, prompt_length=2, evaluator=None), digits.train_stream[:1])
    with pytest.raises(ValueError, match="min_class_count=1000: no class has as many samples"):
        strategy.save(path, min_class_count=1000)
    assert not path.exists()


def test_options_that_no_file_holds_are_refused(saved, vit):
    tensors, values = read_safe_file(saved)
    values["options"]["plugins"] = []
    write_safe_file(saved, tensors, values)
    with pytest.raises(ValueError, match="has unknown options .'plugins'."):
        F2OCLStrategy.load(saved, backbone=vit, evaluator=None)


def test_moments_of_another_shape_are_refused(saved, vit):
    tensors, values = read_safe_file(saved)
    tensors["optimizer.pool.prompts.exp_avg"] = tensors["optimizer.pool.prompts.exp_avg"][:, :2].clone()
    write_safe_file(saved, tensors, values)
    with pytest.raises(ValueError, match="optimiser's pool.prompts.exp_avg is .*2, 32.*, the parameter .*3, 32"):
        F2OCLStrategy.load(saved, backbone=vit, evaluator=None)
