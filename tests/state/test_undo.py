import weakref
from copy import deepcopy
from functools import partial

import pytest
import torch
from avalanche.core import SupervisedPlugin

from avalanche_f2ocl import F2OCLModel, FrozenBackbone
from avalanche_f2ocl.state.class_means import ClassMeans
from avalanche_f2ocl.state.row_adam import RowAdam
from avalanche_f2ocl.state.rows import ClassRows
from avalanche_f2ocl.state.undo import Undo
from avalanche_f2ocl.testing.bad_batches import same
from tests.helpers import as_tensors, assert_same_state, learned


class Rows(ClassRows):
    def __init__(self):
        super().__init__()
        self.register_rows("weights", 2, trainable=True)
        self.register_rows("counts", dtype=torch.int64)


def step(rows, optimizer, used, dense=False):
    optimizer.zero_grad()
    leaf = rows.used("weights")[used] if dense else rows.trainable("weights", torch.tensor(used))
    leaf.square().sum().backward()
    optimizer.step()


@pytest.mark.parametrize("make", [partial(RowAdam, lr=0.1), partial(torch.optim.SGD, lr=0.1)], ids=["adam", "sgd"])
@pytest.mark.parametrize("dense", [False, True])
def test_growth_and_steps_are_taken_back_to_the_bit_and_the_length(make, dense):
    rows = Rows()
    optimizer = make([rows.weights])

    def everything():
        return deepcopy([rows.weights.detach(), rows.counts, optimizer.state_dict()])

    rows.add_rows(60)
    with torch.no_grad():
        rows.weights[:60] = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    for earlier in (False, True):  # without and with a state in the optimiser
        if earlier:
            step(rows, optimizer, [3, 50])
        parameter, before = rows.weights, everything()
        with pytest.raises(KeyError), Undo([rows], optimizer):
            rows.add_rows(40)
            with torch.no_grad():
                rows.weights[60:100] = 1
            step(rows, optimizer, [99, 3], dense)
            step(rows, optimizer, [3, 7, 50])
            raise KeyError
        assert rows.weights is parameter and parameter.grad is None and rows.num_rows == 60
        assert same(everything(), before)


def test_a_block_that_ends_well_changes_nothing_and_keeps_nothing():
    means, optimizer = ClassMeans(2), RowAdam([torch.nn.Parameter(torch.zeros(1, 2))])
    with Undo([means], optimizer) as undo:
        means.add_rows(1)
        undo.save_rows(torch.tensor([0]))
    assert means.num_rows == 1 and not undo._log and not optimizer._optimizer_step_pre_hooks


def test_what_is_noted_does_not_grow_with_the_number_of_classes(vit, images, labels):
    noted = []
    for classes in (10, 5000):
        model = F2OCLModel(vit, prompt_length=4)
        model.begin_batch(images[:1], torch.arange(classes))
        model.learn(images, labels.clamp(0, 9))
        with model.undo(model.optimizer) as undo:
            batch = model.begin_batch(images, labels.clamp(0, 9))
            undo.save_rows(batch.class_rows)
            model.learn_batch(batch)
            noted.append(sum(t.numel() for t in tensors(undo._log)))
    assert noted[0] == noted[1] > 0


def tensors(value):
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        yield value
    elif isinstance(value, partial):
        yield from tensors(value.args)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


@pytest.mark.parametrize("error", [torch.cuda.OutOfMemoryError("full"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("call", [0, 1, 2])
def test_learn_without_avalanche_is_taken_back(model, vit, images, labels, error, call, monkeypatch):
    twin = F2OCLModel(vit, prompt_length=4)
    for one in (model, twin):
        one.learn(images[:3], labels[:3])
    before = learned(model)
    real, calls = model.backbone._run, []

    def encode(*args, **options):
        calls.append(args)
        if len(calls) == call + 1:
            raise error
        return real(*args, **options)

    with monkeypatch.context() as patch, pytest.raises(type(error)):
        patch.setattr(model.backbone, "_run", encode)
        model.learn(images[3:], labels[3:])
    assert_same_state(learned(model), before)
    assert model.batches == 1 and len(model.classes) == 2
    for one in (model, twin):
        one.learn(images[3:], labels[3:])
    assert_same_state(learned(model), learned(twin))


def test_running_out_of_memory_frees_what_the_step_held_before_it_is_taken_back():
    held = []

    def forward():
        activations = torch.zeros(1)
        held.append(weakref.ref(activations))
        raise torch.cuda.OutOfMemoryError("full")

    with pytest.raises(torch.cuda.OutOfMemoryError), Undo([]) as undo:
        undo._log.append(lambda: held.append(held[0]()))
        forward()
    assert held[1] is None


@pytest.mark.parametrize("head", ["ncm", "ridge"])
def test_a_mini_batch_inside_another_is_refused_and_nothing_is_counted(head, vit, digits):
    class LearnsMore(SupervisedPlugin):
        def after_backward(self, strategy, **kwargs):
            strategy.model.learn(strategy.mb_x, strategy.mb_y)

    strategy = FrozenBackbone(backbone=vit, head=head, projection=0, evaluator=None, plugins=[LearnsMore()])
    before = learned(strategy.model)
    with pytest.raises(RuntimeError, match="being learned already"):
        strategy.train(digits.train_stream[0], eval_streams=[])
    assert_same_state(learned(strategy.model), before)
    images, labels = as_tensors(digits.train_stream[0])
    strategy.model.learn(images, labels)
    assert int(strategy.model.head.used("counts").sum()) == len(images)
    if head == "ridge":
        assert int(strategy.model.head.total) == len(images)
