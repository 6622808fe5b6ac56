"""Checks of a strategy in Avalanche's training loop."""

import warnings
from functools import partial
from typing import Any

import torch
from avalanche.benchmarks import nc_benchmark, split_online_stream
from avalanche.core import SupervisedPlugin
from torch.utils.data import DataLoader, TensorDataset

from avalanche_f2ocl.datasets.image_tensors import ImageTensors
from avalanche_f2ocl.testing.running import (
    Make,
    Note,
    Recorder,
    as_tensors,
    assert_same_state,
    few_digits,
    learned,
    train_online,
)


def callbacks_come_in_avalanches_order(make: Make) -> None:
    """Every callback of Avalanche is called, in Avalanche's order."""
    digits = few_digits()
    recorder = Recorder()
    strategy = make(plugins=[recorder])
    online = split_online_stream([digits.train_stream[0]], 20, shuffle=False)
    strategy.train(online, eval_streams=[])
    iteration = [
        "before_training_iteration", "before_forward", "after_forward", "before_backward", "after_backward",
        "before_update", "after_update", "after_training_iteration",
    ]  # fmt: skip
    experience = [
        "before_train_dataset_adaptation", "after_train_dataset_adaptation", "before_training_exp",
        "before_training_epoch", *iteration * 2, "after_training_epoch", "after_training_exp",
    ]  # fmt: skip
    assert recorder.calls == ["before_training", *experience * 2, "after_training"]
    recorder.calls.clear()
    strategy.eval(digits.test_stream[:1])
    assert recorder.calls == [
        "before_eval", "before_eval_dataset_adaptation", "after_eval_dataset_adaptation", "before_eval_exp",
        "before_eval_iteration", "before_eval_forward", "after_eval_forward", "after_eval_iteration",
        "after_eval_exp", "after_eval",
    ]  # fmt: skip


def plain_experiences_equal_the_online_stream_in_the_same_order(make: Make) -> None:
    """Whole experiences teach what the same images in an online stream do."""
    digits = few_digits()
    plain, online = make(), make()
    for experience in digits.train_stream[:3]:
        plain.train(experience, shuffle=False, eval_streams=[])
    train_online(online, digits.train_stream[:3])
    assert_same_state(learned(plain.model), learned(online.model), exactly=False)


def hidden_task_attributes_change_nothing(make: Make) -> None:
    """Experiences without task attributes teach the same."""
    digits = few_digits()
    seen, hidden, seen_online, hidden_online = make(), make(), make(), make()
    for experience in digits.train_stream[:2]:
        seen.train(experience, shuffle=False, eval_streams=[])
        hidden.train(experience.train(), shuffle=False, eval_streams=[])
    train_online(seen_online, digits.train_stream[:2])
    train_online(hidden_online, [experience.train() for experience in digits.train_stream[:2]])
    assert_same_state(learned(seen.model), learned(hidden.model))
    assert_same_state(learned(seen_online.model), learned(hidden_online.model))
    for experience in digits.test_stream[:2]:
        hidden.eval(experience.eval())


def task_labels_and_three_part_batches_change_nothing(make: Make) -> None:
    """Task labels are not read."""
    digits = few_digits()
    parts = [as_tensors(stream[0]) for stream in (digits.train_stream, digits.test_stream)]
    labels = {c: i for i, c in enumerate(parts[0][1].unique().tolist())}
    data = [ImageTensors(x, torch.tensor([labels[c] for c in y.tolist()])) for x, y in parts]
    tasks = nc_benchmark(*data, n_experiences=2, task_labels=True, seed=0)
    without = nc_benchmark(*data, n_experiences=2, task_labels=False, seed=0)
    strategies = [make(), make()]
    for strategy, benchmark in zip(strategies, (tasks, without), strict=True):
        for experience in benchmark.train_stream:
            assert len(experience.dataset[0]) == 3
            strategy.train(experience, shuffle=False, eval_streams=[])
        strategy.eval(benchmark.test_stream)
    assert_same_state(learned(strategies[0].model), learned(strategies[1].model))


def two_part_batches(make: Make) -> None:
    """Mini-batches of images and labels alone are learned."""
    digits = few_digits()
    strategy = make()
    pairs = TensorDataset(*as_tensors(digits.train_stream[0]))
    loader = DataLoader(pairs, batch_size=10)
    strategy.plugins.insert(0, Note("before_training_epoch", lambda s: setattr(s, "dataloader", loader)))
    strategy.train(digits.train_stream[0], eval_streams=[])
    assert strategy.model.batches == 4


def same_seed_same_result_and_the_global_generator_is_left_alone(make: Make) -> None:
    """Draws depend on the seed alone."""
    digits = few_digits()
    states = []
    for noise in (1, 2):
        torch.manual_seed(noise)
        strategy = make()
        before = torch.random.get_rng_state()
        for experience in digits.train_stream[:2]:
            strategy.train(experience, eval_streams=[])
        assert torch.equal(torch.random.get_rng_state(), before)
        states.append(learned(strategy.model))
    assert_same_state(states[0], states[1])


def the_seed_decides_how_plain_experiences_are_shuffled(make: Make) -> None:
    """The order of a plain experience depends on the seed, too."""
    digits = few_digits()
    orders = []
    for seed in (0, 0, 1):
        strategy = make(seed=seed)
        labels: list[int] = []
        strategy.plugins.insert(0, Note("before_training_iteration", partial(_note_labels, labels)))
        strategy.train(digits.train_stream[0], eval_streams=[])
        orders.append(labels)
    assert orders[0] == orders[1] != orders[2] and sorted(orders[0]) == sorted(orders[2])


def a_plugin_that_changes_the_minibatch_is_heeded(make: Make) -> None:
    """The mini-batch is learned as other plugins have changed it."""
    digits = few_digits()

    def relabel(strategy):
        strategy.mbatch[1] = strategy.mbatch[1] + 100

    strategy = make(plugins=[Note("before_training_iteration", relabel)])
    train_online(strategy, digits.train_stream[:1])
    assert strategy.model.class_ids.min() >= 100


def nothing_of_a_minibatch_is_kept_after_train_and_eval(make: Make) -> None:
    """No reference to the mini-batch is left."""
    digits = few_digits()
    strategy = make()
    train_online(strategy, digits.train_stream[:1])
    strategy.eval(digits.test_stream[:1])
    for name in ("mbatch", "mb_output", "mb_labels", "mb_prediction", "checked_minibatch", "training_batch"):
        assert getattr(strategy, name) is None, name
    assert strategy.model.batches == 4
    assert not strategy.loss.requires_grad


def no_warnings_from_avalanche_about_plugins_or_arguments(make: Make) -> None:
    """Training is silent."""
    digits = few_digits()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="No loggers specified")
        train_online(make(), digits.train_stream[:1])


def device_is_the_best_there_is(make: Make) -> None:
    """CUDA if there is one."""
    assert make().device.type == ("cuda" if torch.cuda.is_available() else "cpu")


class _Evaluating(SupervisedPlugin):
    """Evaluates in the middle of the second mini-batch, in several callbacks."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self.stream, self.done = stream, 0

    def _evaluate(self, strategy, **kwargs):
        if strategy.clock.train_iterations == 1:
            before = [strategy.mbatch, strategy.mb_output, strategy.training_batch, strategy.mb_labels]
            strategy.eval(self.stream)
            after = [strategy.mbatch, strategy.mb_output, strategy.training_batch, strategy.mb_labels]
            assert all(one is other for one, other in zip(before, after, strict=True)) and strategy.is_training
            self.done += 1

    before_forward = after_forward = before_backward = before_update = after_training_iteration = _evaluate


def an_evaluation_in_the_middle_of_a_mini_batch_changes_nothing(make: Make) -> None:
    """Callbacks may evaluate without affecting the mini-batch."""
    digits = few_digits()
    plugin = _Evaluating(digits.test_stream[:1])
    states = []
    for plugins in ([], [plugin]):
        strategy = make(plugins=plugins)
        train_online(strategy, digits.train_stream[:1])
        states.append(learned(strategy.model))
    assert_same_state(states[0], states[1])
    assert plugin.done == 5


def _note_labels(labels: list[int], strategy: Any) -> None:
    labels += strategy.mb_y.tolist()


LOOP = (
    callbacks_come_in_avalanches_order,
    plain_experiences_equal_the_online_stream_in_the_same_order,
    hidden_task_attributes_change_nothing,
    task_labels_and_three_part_batches_change_nothing,
    two_part_batches,
    same_seed_same_result_and_the_global_generator_is_left_alone,
    the_seed_decides_how_plain_experiences_are_shuffled,
    a_plugin_that_changes_the_minibatch_is_heeded,
    nothing_of_a_minibatch_is_kept_after_train_and_eval,
    no_warnings_from_avalanche_about_plugins_or_arguments,
    device_is_the_best_there_is,
    an_evaluation_in_the_middle_of_a_mini_batch_changes_nothing,
)
