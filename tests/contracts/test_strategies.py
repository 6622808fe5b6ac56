"""What a user of Avalanche may expect of every strategy."""

import warnings

import numpy as np
import pytest
import torch
from avalanche.benchmarks import nc_benchmark, split_online_stream
from avalanche.core import SupervisedPlugin
from avalanche.evaluation.metrics import (
    accuracy_metrics,
    confusion_matrix_metrics,
    forgetting_metrics,
    loss_metrics,
)
from avalanche.logging import InteractiveLogger, TextLogger
from avalanche.training.plugins import EvaluationPlugin, ReplayPlugin
from torch.utils.data import DataLoader

from avalanche_f2ocl import f2ocl_metrics
from avalanche_f2ocl.datasets.image_tensors import ImageTensors
from avalanche_f2ocl.heads import MASKED_LOGIT
from tests.contracts.strategies import STRATEGIES
from tests.helpers import as_tensors, assert_same_state, learned, train_online


@pytest.fixture(params=STRATEGIES)
def name(request):
    return request.param


@pytest.fixture
def make(name, vit):
    return lambda **options: STRATEGIES[name](**{"backbone": vit, "evaluator": None, **options})


class Recorder(SupervisedPlugin):
    """Notes every callback, and the training-time outputs."""

    def __init__(self):
        super().__init__()
        self.calls, self.outputs = [], []

    def __getattribute__(self, name):
        if name.startswith(("before_", "after_")):
            calls = super().__getattribute__("calls")
            outputs = super().__getattribute__("outputs")

            def note(strategy, **kwargs):
                calls.append(name)
                if name == "after_forward":
                    outputs.append(strategy.mb_output.detach().clone())

            return note
        return super().__getattribute__(name)


def test_callbacks_come_in_avalanches_order(make, digits):
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


def test_plain_experiences_equal_the_online_stream_in_the_same_order(name, make, digits):
    if name == "er":
        pytest.skip("on plain experiences Avalanche's replay buffer fills only when the experience ends")
    plain, online = make(), make()
    for experience in digits.train_stream[:3]:
        plain.train(experience, shuffle=False, eval_streams=[])
    train_online(online, digits.train_stream[:3])
    assert_same_state(learned(plain.model), learned(online.model), exactly=False)


def test_hidden_task_attributes_change_nothing(make, digits):
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


def test_task_labels_and_three_part_batches_change_nothing(make, digits):
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
    assert_same_state(*(learned(strategy.model) for strategy in strategies))


def test_two_part_batches(make, digits):
    strategy = make()
    images, labels = as_tensors(digits.train_stream[0])

    class Pairs(SupervisedPlugin):
        def before_training_epoch(self, strategy, **kwargs):
            pairs = torch.utils.data.TensorDataset(images, labels)
            strategy.dataloader = DataLoader(pairs, batch_size=10)

    strategy.plugins.insert(0, Pairs())
    strategy.train(digits.train_stream[0], eval_streams=[])
    assert strategy.model.batches == 4


def test_same_seed_same_result_and_the_global_generator_is_left_alone(make, digits):
    states = []
    for noise in (1, 2):
        torch.manual_seed(noise)
        strategy = make()
        before = torch.random.get_rng_state()
        for experience in digits.train_stream[:2]:
            strategy.train(experience, eval_streams=[])
        assert torch.equal(torch.random.get_rng_state(), before)
        states.append(learned(strategy.model))
    assert_same_state(*states)


def test_the_seed_decides_how_plain_experiences_are_shuffled(make, digits):
    orders = []
    for seed in (0, 0, 1):
        strategy = make(seed=seed)
        labels = []
        recorder = type("Labels", (SupervisedPlugin,), {
            "before_training_iteration": lambda self, s, labels=labels, **k: labels.extend(s.mb_y.tolist())
        })()  # fmt: skip
        strategy.plugins.insert(0, recorder)
        strategy.train(digits.train_stream[0], eval_streams=[])
        orders.append(labels)
    assert orders[0] == orders[1] != orders[2] and sorted(orders[0]) == sorted(orders[2])


def test_evaluation_before_training_works_and_nothing_counts_as_right(make, digits):
    strategy = make(evaluator=EvaluationPlugin(accuracy_metrics(stream=True), loss_metrics(stream=True)))
    metrics = strategy.eval(digits.test_stream)
    accuracy = [value for name, value in metrics.items() if name.startswith("Top1_Acc_Stream")]
    assert accuracy == [0.0]
    loss = [value for name, value in metrics.items() if name.startswith("Loss_Stream")]
    assert len(loss) == 1 and np.isnan(loss[0])  # there is none in evaluation, and 0 would say that all is right


def test_periodic_evaluation_with_its_initial_run(make, digits, evaluator):
    strategy = make(evaluator=evaluator, eval_every=1)
    strategy.train(digits.train_stream[0], eval_streams=[digits.test_stream[0]])
    assert "A_n/eval_phase/test_stream" in evaluator.get_last_metrics()


def test_unseen_classes_are_never_predicted(make, digits):
    strategy = make()
    outputs = []

    class Outputs(SupervisedPlugin):
        def after_eval_forward(self, strategy, **kwargs):
            outputs.append(strategy.mb_output)

    strategy.plugins.append(Outputs())
    train_online(strategy, digits.train_stream[:2])
    seen = strategy.model.class_ids.tolist()
    strategy.eval(digits.test_stream)
    assert len(outputs) == 5
    for output in outputs:
        assert set(output.argmax(1).tolist()) <= set(seen)
        unseen = [c for c in range(output.shape[1]) if c not in seen]
        assert (output[:, unseen] == MASKED_LOGIT).all() and output.isfinite().all()


def test_a_column_is_a_class_id(make, digits):
    strategy = make()
    train_online(strategy, digits.train_stream[:2])
    images, labels = as_tensors(digits.test_stream[0])
    columns = []
    strategy.plugins.append(type("Columns", (SupervisedPlugin,), {
        "after_eval_forward": lambda self, s, **k: columns.append(s.mb_output)
    })())  # fmt: skip
    strategy.eval(digits.test_stream[:1])
    rows = strategy.model(images)
    assert torch.equal(columns[0][:, strategy.model.class_ids], rows)
    assert columns[0].shape[1] == 1 + max(strategy.model.class_ids.max(), labels.max())


def test_predictions_do_not_depend_on_the_batch_size_of_evaluation(make, digits):
    one, many = make(eval_mb_size=1), make(eval_mb_size=64)
    answers = []
    for strategy in (one, many):
        train_online(strategy, digits.train_stream[:2])
        got = []
        strategy.plugins.append(type("Answers", (SupervisedPlugin,), {
            "after_eval_iteration": lambda self, s, got=got, **k: got.extend(s.mb_output.argmax(1).tolist())
        })())  # fmt: skip
        strategy.eval(digits.test_stream[:2])
        answers.append(got)
    assert answers[0] == answers[1]


def test_a_plugin_that_changes_the_minibatch_is_heeded(make, digits):
    class Relabel(SupervisedPlugin):
        def before_training_iteration(self, strategy, **kwargs):
            strategy.mbatch[1] = strategy.mbatch[1] + 100

    strategy = make(plugins=[Relabel()])
    train_online(strategy, digits.train_stream[:1])
    assert strategy.model.class_ids.min() >= 100


def test_training_time_outputs_know_no_labels(make, digits):
    """Relabelling a mini-batch among classes seen before changes what is learned, not what is output."""
    images, labels = as_tensors(digits.train_stream[0])
    other = {c: d for c, d in zip(labels.unique().tolist(), labels.unique().flip(0).tolist(), strict=True)}
    outputs, states = [], []
    for relabel in (False, True):
        recorder = Recorder()
        strategy = make(plugins=[recorder])
        strategy.train(digits.train_stream[0], shuffle=False, eval_streams=[])
        swapped = torch.tensor([other[c] for c in labels[:10].tolist()]) if relabel else labels[:10]
        strategy.is_training = True
        strategy.dataloader = [[images[:10], swapped]]
        strategy.training_epoch()
        outputs.append(recorder.outputs[-1])
        states.append(learned(strategy.model))
    assert torch.equal(*outputs)
    assert any(not torch.equal(states[0][part], states[1][part]) for part in states[0])


def test_first_output_of_a_stream_predicts_nothing(make, digits):
    recorder = Recorder()
    strategy = make(plugins=[recorder])
    strategy.train(digits.train_stream[0], eval_streams=[])
    first = recorder.outputs[0]
    assert set(first.argmax(1).tolist()) == {first.shape[1] - 1}
    assert first.shape[1] - 1 not in digits.train_stream[0].classes_in_this_experience


def test_other_metrics_loggers_and_plugins(make, digits, tmp_path):
    with open(tmp_path / "log.txt", "w") as log:
        evaluator = EvaluationPlugin(
            accuracy_metrics(minibatch=True, epoch=True, experience=True, stream=True),
            loss_metrics(minibatch=True, epoch=True, experience=True, stream=True),
            forgetting_metrics(experience=True, stream=True),
            confusion_matrix_metrics(num_classes=10, stream=True, save_image=False),
            *f2ocl_metrics(),
            loggers=[TextLogger(log), InteractiveLogger()],
        )
        strategy = make(evaluator=evaluator, plugins=[ReplayPlugin(mem_size=20)])
        train_online(strategy, digits.train_stream[:2])
        metrics = strategy.eval(digits.test_stream[:2])
    assert "A_n/eval_phase/test_stream = " in (tmp_path / "log.txt").read_text()
    top1 = next(value for name, value in metrics.items() if name.startswith("Top1_Acc_Stream/eval"))
    assert top1 == pytest.approx(metrics["A_n_samples/eval_phase/test_stream"])


def test_nothing_of_a_minibatch_is_kept_after_train_and_eval(make, digits):
    strategy = make()
    train_online(strategy, digits.train_stream[:1])
    strategy.eval(digits.test_stream[:1])
    for name in ("mbatch", "mb_output", "mb_labels", "mb_prediction", "checked_minibatch", "training_batch"):
        assert getattr(strategy, name) is None, name
    assert strategy.model.batches == 4
    assert not strategy.loss.requires_grad


def test_no_warnings_from_avalanche_about_plugins_or_arguments(make, digits):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="No loggers specified")
        train_online(make(), digits.train_stream[:1])


@pytest.mark.parametrize(
    "spoil, error, message",
    [
        (lambda x, y: (x.float() * float("nan"), y), ValueError, "NaN"),
        (lambda x, y: (x[:, :, 0], y), ValueError, r"\(B, C, H, W\)"),
        (lambda x, y: (x.repeat(1, 2, 1, 1), y), ValueError, "2 channels"),
        (lambda x, y: (x.float(), y), ValueError, "inputs='normalised'"),
        (lambda x, y: (x, y.float()), TypeError, "float32"),
        (lambda x, y: (x, y - 10), ValueError, "labels hold -.*0 or more"),
    ],
    ids=["NaN", "rank", "channels", "range", "float labels", "negative labels"],
)
def test_a_bad_minibatch_is_refused_before_anything_changes(make, digits, spoil, error, message):
    strategy = make()
    train_online(strategy, digits.train_stream[:1])
    before = learned(strategy.model)
    images, labels = as_tensors(digits.train_stream[1])
    strategy.is_training = True
    strategy.dataloader = [list(spoil(images[:10], labels[:10]))]
    with pytest.raises(error, match=message):
        strategy.training_epoch()
    assert_same_state(learned(strategy.model), before)


@pytest.mark.parametrize(
    "option, error",
    [
        (dict(train_mb_size=0), ValueError),
        (dict(eval_mb_size=1.5), TypeError),
        (dict(train_epochs=-1), ValueError),
        (dict(normalise="none"), ValueError),
        (dict(inputs="raw"), ValueError),
        (dict(readout="mean"), ValueError),
        (dict(no_such_option=1), TypeError),
        (dict(backbone="vit_nonsense"), ValueError),
    ],
    ids=str,
)
def test_wrong_options_are_named(make, option, error):
    with pytest.raises(error, match=next(iter(option))):
        make(**option)


def test_device_is_the_best_there_is(make):
    assert make().device.type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.gpu
def test_on_cuda_with_avalanches_metrics(make, digits):
    evaluator = EvaluationPlugin(accuracy_metrics(stream=True), loss_metrics(stream=True), *f2ocl_metrics())
    strategy = make(device="cuda", evaluator=evaluator)
    train_online(strategy, digits.train_stream[:2])
    metrics = strategy.eval(digits.test_stream[:2])
    assert 0 < metrics["A_n/eval_phase/test_stream"] <= 1


@pytest.mark.gpu
def test_no_host_synchronisation_in_a_training_step(make, digits):
    strategy = make(device="cuda")
    train_online(strategy, digits.train_stream[:1])
    images, labels = as_tensors(digits.train_stream[0])
    strategy.model.train()
    strategy.is_training = True
    strategy.dataloader = [[images[:10].pin_memory(), labels[:10].pin_memory()]]
    torch.cuda.set_sync_debug_mode("error")
    try:
        strategy.training_epoch()
    finally:
        torch.cuda.set_sync_debug_mode("default")


class Evaluating(SupervisedPlugin):
    """Evaluates in the middle of the second mini-batch, in several callbacks."""

    def __init__(self, stream):
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


def test_an_evaluation_in_the_middle_of_a_mini_batch_changes_nothing(make, digits):
    plugin = Evaluating(digits.test_stream[:1])
    states = []
    for plugins in ([], [plugin]):
        strategy = make(plugins=plugins)
        train_online(strategy, digits.train_stream[:1])
        states.append(learned(strategy.model))
    assert_same_state(*states)
    assert plugin.done == 5
