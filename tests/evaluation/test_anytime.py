"""Curves of accuracy: by hand, and against loops written out."""

import numpy as np
import pytest
import torch
from avalanche.benchmarks import benchmark_from_datasets, nc_benchmark
from avalanche.benchmarks.utils import as_classification_dataset
from avalanche.core import SupervisedPlugin
from torch.utils.data import TensorDataset

from avalanche_f2ocl import CheckpointPlugin, F2OCLStrategy, ViTNCM, class_incremental_stream, drifting_stream
from avalanche_f2ocl.datasets.image_tensors import ImageTensors
from avalanche_f2ocl.datasets.loading import load
from avalanche_f2ocl.evaluation.anytime import area_under_curve, evaluation_points, run_anytime
from avalanche_f2ocl.models.prediction import Prediction
from tests.contracts.strategies import STRATEGIES
from tests.helpers import as_tensors, assert_same_state, learned, train_online


@pytest.fixture(scope="module")
def stream():
    """104 images, so that the last mini-batch is short."""
    data = load("digits", train_per_class=13, test_per_class=4)
    train = torch.tensor(data.train.targets) < 8
    test = torch.tensor(data.test.targets) < 8
    pair = [
        TensorDataset(part.images[kept], torch.tensor(part.targets)[kept])
        for part, kept in ((data.train, train), (data.test, test))
    ]
    return drifting_stream(pair, width=0.05)


def ncm(vit, **options):
    return ViTNCM(backbone=vit, evaluator=None, **options)


@pytest.mark.parametrize(
    "samples, accuracy, area",
    [
        ([10], [0.7], 0.7),
        ([10, 20, 30, 40], [0.9, 0.7, 0.6, 0.4], 0.65),  # the mean
        ([30, 40], [1.0, 0.6], 0.9),  # (30 * 1 + 10 * 0.6) / 40
    ],
)
def test_area_by_hand(samples, accuracy, area):
    assert area_under_curve(samples, accuracy) == pytest.approx(area)


@pytest.mark.parametrize(
    "samples, accuracy, message",
    [
        ([], [], "shapes"),
        ([1, 2], [0.5], "shapes"),
        ([[1]], [[0.5]], "shapes"),
        ([0, 1], [1, 1], "ascend"),
        ([2, 2], [1, 1], "ascend"),
    ],
)
def test_no_area(samples, accuracy, message):
    with pytest.raises(ValueError, match=message):
        area_under_curve(samples, accuracy)


@pytest.mark.parametrize(
    "samples, every, batch_size, points",
    [
        (100, 50, 10, [50, 100]),
        (100, 30, 10, [30, 60, 90, 100]),
        (100, 1000, 10, [100]),
        (100, 100, 10, [100]),
        (25, 1, 10, [10, 20, 25]),
        (50, 12, 10, [20, 30, 40, 50]),  # 12, 24, 36, 48
        (24, 22, 10, [24]),  # 22 is reached in the last, short mini-batch
        (5, 2, 10, [5]),
    ],
)
def test_evaluation_points_by_hand(samples, every, batch_size, points):
    assert evaluation_points(samples, every, batch_size).tolist() == points


def curve_by_hand(model, train, test, points, batch_size=10):
    accuracy, seen = [], []
    images, labels = train
    for start in range(0, len(labels), batch_size):
        model.learn(images[start : start + batch_size], labels[start : start + batch_size])
        done = min(start + batch_size, len(labels))
        if done in points:
            known = set(labels[:done].tolist())
            items = [(x, int(y)) for x, y in zip(*test, strict=True) if int(y) in known]
            right = [int(model.predict(x.unsqueeze(0))) == y for x, y in items]
            accuracy.append(sum(right) / len(right))
            seen.append(len(known))
    return accuracy, seen


@pytest.mark.parametrize("make", [ViTNCM, lambda **o: F2OCLStrategy(prompt_length=3, **o)], ids=["vit-ncm", "f2ocl"])
def test_equals_the_loop_written_out(make, vit, stream):
    result = run_anytime(make(backbone=vit, evaluator=None), stream, every=25, progress=False)
    assert result.samples.tolist() == [30, 50, 80, 100, 104]
    train, test = as_tensors(stream.train_stream[0]), as_tensors(stream.test_stream[0])
    accuracy, seen = curve_by_hand(make(backbone=vit, evaluator=None).model, train, test, result.samples.tolist())
    assert result.accuracy == pytest.approx(accuracy) and result.classes_seen.tolist() == seen
    assert seen[0] < seen[-1] == 8
    assert result.A_last == accuracy[-1] and result.prequential is None and result.seconds > 0
    assert result.A_auc == pytest.approx(np.dot(accuracy, [30, 20, 30, 20, 4]) / 104)


def test_a_class_incremental_stream_is_joined(vit, digits):
    result = run_anytime(ncm(vit, train_mb_size=16), digits, every=48, progress=False)
    parts = [[as_tensors(experience) for experience in s] for s in (digits.train_stream, digits.test_stream)]
    train, test = ([torch.cat(tensors) for tensors in zip(*part, strict=True)] for part in parts)
    accuracy, seen = curve_by_hand(ncm(vit).model, train, test, result.samples.tolist(), batch_size=16)
    assert result.samples.tolist() == [48, 96, 144, 192, 200]
    assert result.classes_seen.tolist() == seen == [4, 6, 8, 10, 10]
    assert result.accuracy == pytest.approx(accuracy)


def perfect(images):
    """A prediction of the class that a constant image is the number of, for classes 0 to 3 in order of coming."""
    return Prediction(torch.nn.functional.one_hot(images[:, 0, 0, 0].long(), 4).float(), images)


def test_a_perfect_model(vit, monkeypatch):
    labels = torch.tensor([0] * 6 + [1] * 6 + [2] * 6 + [3] * 6)
    images = labels.view(-1, 1, 1, 1).expand(-1, 3, 5, 5).to(torch.uint8)
    part = TensorDataset(images, labels)
    stream = class_incremental_stream((part, part), groups=1)
    strategy = ncm(vit, train_mb_size=4)
    monkeypatch.setattr(strategy.model, "predict_batch", lambda x: rows(strategy.model, perfect(x)))
    result = run_anytime(strategy, stream, every=8, progress=False, prequential=True)
    assert result.accuracy.tolist() == [1, 1, 1] and (result.A_auc, result.A_last) == (1, 1)
    known, wrong = set(), 0
    for batch in as_tensors(stream.train_stream[0])[1].split(4):
        wrong += sum(y not in known for y in batch.tolist())
        known |= set(batch.tolist())
    assert result.prequential == pytest.approx(1 - wrong / 24) and wrong >= 4


def rows(model, prediction):
    """Its columns become the model's rows; a class without a row is lost."""
    return Prediction(prediction.logits[:, model.class_ids], prediction.tokens)


def test_prequential_equals_the_loop_written_out(vit, stream):
    result = run_anytime(ncm(vit), stream, every=40, progress=False, prequential=True)
    images, labels = as_tensors(stream.train_stream[0])
    model, right = ncm(vit).model, 0
    for x, y in zip(images.split(10), labels.split(10), strict=True):
        if model.batches:
            right += int((model.predict(x) == y).sum())
        model.learn(x, y)
    assert result.prequential == pytest.approx(right / 104) and 0 < right < 104


@pytest.mark.parametrize("name", ["f2ocl", "er", "lwf", "dualprompt-ncm"])
def test_evaluating_changes_nothing_that_is_learned(name, vit, stream):
    often, once = (STRATEGIES[name](backbone=vit, evaluator=None) for _ in range(2))
    results = [run_anytime(often, stream, 20, False, prequential=True), run_anytime(once, stream, 1000, False)]
    assert_same_state(learned(often.model), learned(once.model))
    assert len(results[0].samples) == 6 and len(results[1].samples) == 1
    assert results[0].A_last == results[1].A_last == results[1].A_auc
    trained = train_online(STRATEGIES[name](backbone=vit, evaluator=None), stream.train_stream)
    assert_same_state(learned(once.model), learned(trained.model))


def test_the_bar_counts_the_images_of_classes_seen(vit, stream, capsys):
    result = run_anytime(ncm(vit), stream, every=30)
    images = 104 + 4 * int(result.classes_seen.sum())  # 4 test images of each class
    assert f"{images}/{images}" in capsys.readouterr().err


def test_a_benchmark_with_task_labels_and_transforms(vit):
    data = load("digits", 10, 5)
    invert = {"eval_transform": lambda image: 255 - image}
    plain, inverted = (nc_benchmark(data.train, data.test, 5, True, seed=0, **o) for o in ({}, invert))
    plain, inverted = (run_anytime(ncm(vit), b, 50, progress=False) for b in (plain, inverted))
    assert plain.classes_seen.tolist() == inverted.classes_seen.tolist() and plain.classes_seen[-1] == 10
    assert plain.A_last > inverted.A_last


def test_the_strategy_s_metrics_still_work_and_go_back_to_what_they_were(vit, stream, evaluator):
    strategy = ViTNCM(backbone=vit, evaluator=evaluator)
    plugins, metrics = list(strategy.plugins), list(evaluator.metrics)
    result = run_anytime(strategy, stream, every=1000, progress=False, prequential=True)
    assert strategy.plugins == plugins and evaluator.metrics == metrics
    assert evaluator.get_last_metrics()["A_n/eval_phase/anytime_stream"] == pytest.approx(result.A_last)


def test_plugins_go_when_training_fails(vit, stream):
    class Failing(SupervisedPlugin):
        def after_training_exp(self, strategy, **kwargs):
            raise OSError("from outside")

    strategy = ncm(vit, plugins=[Failing()])
    plugins, metrics = list(strategy.plugins), list(strategy.evaluator.metrics)
    with pytest.raises(OSError, match="from outside"):
        run_anytime(strategy, stream, every=20, progress=False)
    assert strategy.plugins == plugins and strategy.evaluator.metrics == metrics


def test_a_resumed_run_gives_the_same_curve(vit, stream, tmp_path):
    path = tmp_path / "run.safetensors"
    whole = run_anytime(ncm(vit, plugins=[CheckpointPlugin(path, every_batches=7)]), stream, 20, progress=False)
    resumed = ncm(vit)
    resumed.resume(path)
    with pytest.raises(RuntimeError, match="resumed"):
        run_anytime(resumed, stream, 20, progress=False, prequential=True)
    result = run_anytime(resumed, stream, 20, progress=False)
    assert result.accuracy.tolist() == whole.accuracy.tolist()


@pytest.mark.parametrize("every, error", [(0, ValueError), (-5, ValueError), (10.0, TypeError), (True, TypeError)])
def test_bad_every(every, error, vit, stream):
    with pytest.raises(error, match=f"every={every}"):
        run_anytime(ncm(vit), stream, every)


def test_no_test_image_of_the_first_classes(vit):
    images = torch.zeros(20, 3, 5, 5, dtype=torch.uint8)
    train, test = (as_classification_dataset(ImageTensors(images, torch.full((20,), label))) for label in (0, 1))
    benchmark = benchmark_from_datasets(train=[train], test=[test])
    strategy = ncm(vit)
    with pytest.raises(ValueError, match="no test image of a class among the first 10"):
        run_anytime(strategy, benchmark, every=10, progress=False)
    assert strategy.model.batches == 0
