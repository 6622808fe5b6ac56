"""Threads that share a model see a mini-batch as a whole or not at all."""

import copy
import pickle
import threading

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy, FrozenModel
from avalanche_f2ocl.models.lock import ModelLock

MODELS = {
    "f2ocl": lambda vit: F2OCLModel(vit, prompt_length=2),
    "ridge": lambda vit: FrozenModel(vit, head="ridge", projection=0),
}


class Paused:
    """Stops a method at its end until it may go on; ``reached`` says that it is there."""

    def __init__(self, method):
        self.method, self.reached, self.go_on = method, threading.Event(), threading.Event()

    def __call__(self, *args):
        result = self.method(*args)
        self.reached.set()
        assert self.go_on.wait(30)
        return result


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("ask", ["__call__", "predict", "predict_proba"])
def test_a_prediction_is_of_the_state_before_or_after(name, ask, vit, images, labels):
    model, other = MODELS[name](vit), MODELS[name](vit)
    for one in (model, other):
        one.learn(images[:6], [0, 1] * 3)
    before = getattr(model, ask)(images)
    other.learn(images[6:], [1, 2] * 3)
    after, answers = getattr(other, ask)(images), []
    paused = Paused(model.head.update)
    model.head.update = paused
    learner = threading.Thread(target=lambda: model.learn(images[6:], [1, 2] * 3))
    asker = threading.Thread(target=lambda: answers.append(getattr(model, ask)(images)))
    learner.start()
    assert paused.reached.wait(30)
    asker.start()
    asker.join(0.3)
    assert not answers  # it waits: the sums are in, the mini-batch is not counted yet
    paused.go_on.set()
    learner.join(30)
    asker.join(30)
    torch.testing.assert_close(answers[0], after)
    assert before.shape != after.shape or not torch.equal(before, after)


def test_threads_that_learn_take_turns(vit, images):
    model = FrozenModel(vit)
    threads = [threading.Thread(target=model.learn, args=(images, [0, 1] * 6)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert model.batches == 4 and model.head.used("counts").tolist() == [24, 24]


def test_a_strategys_mini_batch_holds_the_lock(small_vit, digits):
    strategy = F2OCLStrategy(backbone=small_vit, prompt_length=2, evaluator=None)
    strategy.model.head.update = paused = Paused(strategy.model.head.update)
    learner = threading.Thread(target=lambda: strategy.train(digits.train_stream[0], eval_streams=[]))
    learner.start()
    assert paused.reached.wait(30)
    taken = []

    def ask():
        with strategy.model.lock:
            taken.append(strategy.model.batches)

    asker = threading.Thread(target=ask)
    asker.start()
    asker.join(0.2)
    assert not taken
    paused.go_on.set()
    learner.join(60)
    asker.join(30)
    assert len(taken) == 1 and taken[0] >= 1 and strategy.model.batches == 4


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_have_locks_of_their_own(duplicate):
    lock = ModelLock()
    with lock:
        other = duplicate(lock)
        free = []
        thread = threading.Thread(target=lambda: [other.__enter__(), free.append(1)])
        thread.start()
        thread.join(30)
    assert free == [1]
