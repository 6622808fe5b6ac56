"""Checks of a strategy's outputs, in training and in evaluation."""

import io
import warnings
from functools import partial
from math import isclose, isnan
from typing import Any

import torch
from avalanche.evaluation.metrics import accuracy_metrics, confusion_matrix_metrics, forgetting_metrics, loss_metrics
from avalanche.logging import InteractiveLogger, TextLogger
from avalanche.training.plugins import EvaluationPlugin, ReplayPlugin
from torch import Tensor

from avalanche_f2ocl.heads import MASKED_LOGIT
from avalanche_f2ocl.metrics.f2ocl import f2ocl_metrics
from avalanche_f2ocl.testing.running import Make, Note, Recorder, as_tensors, few_digits, learned, train_online


def evaluation_before_training_works_and_nothing_counts_as_right(make: Make) -> None:
    """An untrained strategy has no right answer and no loss."""
    digits = few_digits()
    strategy = make(evaluator=EvaluationPlugin(accuracy_metrics(stream=True), loss_metrics(stream=True)))
    metrics = strategy.eval(digits.test_stream)
    accuracy = [value for name, value in metrics.items() if name.startswith("Top1_Acc_Stream")]
    assert accuracy == [0.0]
    loss = [value for name, value in metrics.items() if name.startswith("Loss_Stream")]
    assert len(loss) == 1 and isnan(loss[0])  # evaluation has no loss, and 0 would suggest that all is right


def periodic_evaluation_with_its_initial_run(make: Make) -> None:
    """Avalanche's ``eval_every`` works."""
    digits = few_digits()
    evaluator = EvaluationPlugin(*f2ocl_metrics())
    strategy = make(evaluator=evaluator, eval_every=1)
    strategy.train(digits.train_stream[0], eval_streams=[digits.test_stream[0]])
    assert "A_n/eval_phase/test_stream" in evaluator.get_last_metrics()


def unseen_classes_are_never_predicted(make: Make) -> None:
    """Their logits are masked."""
    digits = few_digits()
    strategy = make()
    outputs: list[Tensor] = []
    strategy.plugins.append(Note("after_eval_forward", lambda s: outputs.append(s.mb_output)))
    train_online(strategy, digits.train_stream[:2])
    seen = strategy.model.class_ids.tolist()
    strategy.eval(digits.test_stream)
    assert len(outputs) == 5
    for output in outputs:
        assert set(output.argmax(1).tolist()) <= set(seen)
        unseen = [c for c in range(output.shape[1]) if c not in seen]
        assert (output[:, unseen] == MASKED_LOGIT).all() and output.isfinite().all()


def a_column_is_a_class_id(make: Make) -> None:
    """Columns of the output are class ids, whatever the order of appearance."""
    digits = few_digits()
    strategy = make()
    train_online(strategy, digits.train_stream[:2])
    images, labels = as_tensors(digits.test_stream[0])
    columns: list[Tensor] = []
    strategy.plugins.append(Note("after_eval_forward", lambda s: columns.append(s.mb_output)))
    strategy.eval(digits.test_stream[:1])
    rows = strategy.model(images)
    assert torch.equal(columns[0][:, strategy.model.class_ids], rows)
    assert columns[0].shape[1] == 1 + max(strategy.model.class_ids.max(), labels.max())


def predictions_do_not_depend_on_the_batch_size_of_evaluation(make: Make) -> None:
    """Each image is scored by itself."""
    digits = few_digits()
    one, many = make(eval_mb_size=1), make(eval_mb_size=64)
    answers = []
    for strategy in (one, many):
        train_online(strategy, digits.train_stream[:2])
        got: list[int] = []
        strategy.plugins.append(Note("after_eval_iteration", partial(_note_answers, got)))
        strategy.eval(digits.test_stream[:2])
        answers.append(got)
    assert answers[0] == answers[1]


def training_time_outputs_know_no_labels(make: Make) -> None:
    """Relabelling a mini-batch among classes seen before changes what is learned, not what is output."""
    digits = few_digits()
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


def first_output_of_a_stream_predicts_nothing(make: Make) -> None:
    """No image counts as right before anything has been learned."""
    digits = few_digits()
    recorder = Recorder()
    strategy = make(plugins=[recorder])
    strategy.train(digits.train_stream[0], eval_streams=[])
    first = recorder.outputs[0]
    assert set(first.argmax(1).tolist()) == {first.shape[1] - 1}
    assert first.shape[1] - 1 not in digits.train_stream[0].classes_in_this_experience


def other_metrics_loggers_and_plugins(make: Make) -> None:
    """Avalanche's metrics, loggers and replay work beside it."""
    digits = few_digits()
    log, interactive = io.StringIO(), InteractiveLogger()
    interactive.file = io.StringIO()
    evaluator = EvaluationPlugin(
        accuracy_metrics(minibatch=True, epoch=True, experience=True, stream=True),
        loss_metrics(minibatch=True, epoch=True, experience=True, stream=True),
        forgetting_metrics(experience=True, stream=True),
        confusion_matrix_metrics(num_classes=10, stream=True, save_image=False),
        *f2ocl_metrics(),
        loggers=[TextLogger(log), interactive],
    )
    strategy = make(evaluator=evaluator, plugins=[ReplayPlugin(mem_size=20)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from Avalanche's own metrics and plugins
        train_online(strategy, digits.train_stream[:2])
        metrics = strategy.eval(digits.test_stream[:2])
    assert "A_n/eval_phase/test_stream = " in log.getvalue()
    top1 = next(value for name, value in metrics.items() if name.startswith("Top1_Acc_Stream/eval"))
    assert isclose(top1, metrics["A_n_samples/eval_phase/test_stream"], rel_tol=1e-6)


def _note_answers(answers: list[int], strategy: Any) -> None:
    answers += strategy.mb_output.argmax(1).tolist()


OUTPUTS = (
    evaluation_before_training_works_and_nothing_counts_as_right,
    periodic_evaluation_with_its_initial_run,
    unseen_classes_are_never_predicted,
    a_column_is_a_class_id,
    predictions_do_not_depend_on_the_batch_size_of_evaluation,
    training_time_outputs_know_no_labels,
    first_output_of_a_stream_predicts_nothing,
    other_metrics_loggers_and_plugins,
)
