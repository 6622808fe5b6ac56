"""Accuracy at any time: a run over a stream with an evaluation after every so many samples."""

import time
from dataclasses import dataclass

import numpy as np
import torch
from avalanche.benchmarks import CLScenario, benchmark_from_datasets
from avalanche.benchmarks.utils import AvalancheDataset
from avalanche.benchmarks.utils.utils import concat_datasets
from avalanche.core import SupervisedPlugin
from avalanche.evaluation.metrics import StreamAccuracy
from numpy.typing import ArrayLike
from tqdm import tqdm

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.evaluation.progress import CountImages
from avalanche_f2ocl.metrics.prequential import PrequentialAccuracy
from avalanche_f2ocl.ranks import is_first
from avalanche_f2ocl.strategies.base import BaseStrategy
from avalanche_f2ocl.streams.online import online_stream


@dataclass(frozen=True)
class AnytimeResult:
    """The curve of a run and its figures of merit, as fractions.

    Attributes:
        samples: number of samples trained on before each evaluation, ``(k,)`` int64, ascending.
        accuracy: accuracy on the test images of the classes seen by then, among these classes, ``(k,)`` float64.
        classes_seen: number of classes seen by then, ``(k,)`` int64.
        A_auc: area under the curve, see :func:`area_under_curve`.
        A_last: accuracy after the last sample.
        prequential: prequential accuracy, see :class:`avalanche_f2ocl.metrics.prequential.PrequentialAccuracy`; None
            unless requested.
        seconds: seconds of training and evaluation.
    """

    samples: np.ndarray
    accuracy: np.ndarray
    classes_seen: np.ndarray
    A_auc: float
    A_last: float
    prequential: float | None
    seconds: float


def area_under_curve(samples: ArrayLike, accuracy: ArrayLike) -> float:
    r"""Area under the accuracy over samples, :math:`A_{auc} = \frac1{n_k} \sum_i f(n_i) (n_i - n_{i-1})`.

    It is the mean of the accuracies if the evaluations are evenly spaced; a shorter last step counts less.

    Source: Koh et al., Online Continual Learning on Class Incremental Blurry Task Configuration with Anytime
    Inference, ICLR 2022.

    Args:
        samples: n_i, positive and ascending, ``(k,)``.
        accuracy: f(n_i), ``(k,)``.

    Raises:
        ValueError: the shapes differ, the arrays are empty, or ``samples`` do not ascend.

    Example:
        >>> area_under_curve([10, 20], [1.0, 0.5])
        0.75
        >>> area_under_curve([10, 20, 25], [1.0, 0.5, 0.0])
        0.6
    """
    steps = np.diff(np.asarray(samples, dtype=float), prepend=0)
    if steps.ndim != 1 or steps.size == 0 or steps.shape != np.shape(accuracy):
        raise ValueError(f"samples and accuracy have shapes {np.shape(samples)} and {np.shape(accuracy)}: must be (k,)")
    if (steps <= 0).any():
        raise ValueError(f"samples={np.asarray(samples).tolist()}: must ascend from above 0")
    return float(np.average(np.asarray(accuracy), weights=steps))


def evaluation_points(samples: int, every: int, batch_size: int) -> np.ndarray:
    """Ends of the mini-batches that reach a multiple of ``every``, and the end of the stream, each once.

    Returns:
        Number of samples trained on by then, ``(k,)`` int64, ascending.

    Example:
        >>> evaluation_points(100, every=25, batch_size=10).tolist()
        [30, 50, 80, 100]
    """
    batches = -(-np.arange(every, samples, every) // batch_size)
    return np.unique(np.minimum(np.append(batches * batch_size, samples), samples))


def run_anytime(
    strategy: BaseStrategy, benchmark: CLScenario, every: int, progress: bool = True, *, prequential: bool = False
) -> AnytimeResult:
    """Trains a strategy online on a whole benchmark, and evaluates it on the way.

    The training experiences are joined, in the stream's order, and cut into mini-batches of
    ``strategy.train_mb_size``; the strategy sees no boundary. The evaluations, at :func:`evaluation_points`, change
    nothing that it learns. Each evaluation encodes the test images of the classes seen so far. Metrics of the
    strategy's evaluator see one training experience, and one test experience per evaluation.

    Args:
        strategy: a strategy of this package.
        benchmark: any benchmark with a training and a test stream.
        every: number of samples between two evaluations.
        progress: whether to show a bar that counts training and test images.
        prequential: whether each mini-batch is also predicted before it is learned.

    Raises:
        TypeError, ValueError: ``every`` is no positive int, or at some evaluation no class seen has a test image.
        RuntimeError: ``prequential`` is set in a resumed run, whose first mini-batches are not learned again.

    Example:
        >>> from avalanche_f2ocl import ViTNCM, shuffled_stream
        >>> stream = shuffled_stream("digits", train_per_class=5, test_per_class=5)
        >>> strategy = ViTNCM(backbone="micro_vit", evaluator=None)
        >>> run_anytime(strategy, stream, every=20, progress=False).samples.tolist()
        [20, 40, 50]
    """
    check_positive_int("every", every)
    if prequential and strategy.catching_up:
        raise RuntimeError("prequential=True: a resumed run does not predict the mini-batches that it does not learn")
    start = time.perf_counter()
    streams = (benchmark.train_stream, benchmark.test_stream)
    train, test = (concat_datasets([experience.dataset for experience in stream]) for stream in streams)
    points = evaluation_points(len(train), every, strategy.train_mb_size)
    classes, first = np.unique(list(train.targets), return_index=True)
    first_seen = dict(zip(classes.tolist(), first.tolist(), strict=True))
    seen_from = np.array([first_seen.get(int(label), len(train)) for label in test.targets])
    tests = [np.flatnonzero(seen_from < point) for point in points]
    if len(tests[0]) == 0:
        raise ValueError(f"there is no test image of a class among the first {points[0]} training samples")
    online = online_stream(benchmark_from_datasets(train=[train]).train_stream, strategy.train_mb_size)
    predictors = [PrequentialAccuracy()] if prequential else []
    plugins, metrics = list(strategy.plugins), list(strategy.evaluator.metrics)
    total = len(train) + sum(map(len, tests))
    hidden = not (progress and is_first())
    with tqdm(total=total, unit="img", desc=type(strategy).__name__, disable=hidden, mininterval=1) as bar:
        batches = -(-points // strategy.train_mb_size)
        evaluator = _Evaluate(test, dict(zip(batches.tolist(), tests, strict=True)), bar)
        # One plugin must come before the mini-batch's classes are made, the other after everything is learned from it.
        strategy.plugins[:] = [*predictors, *plugins, CountImages(bar), evaluator]
        strategy.evaluator.metrics.append(StreamAccuracy())
        try:
            strategy.train(online, eval_streams=[])
        finally:
            strategy.plugins[:], strategy.evaluator.metrics[:] = plugins, metrics
    accuracy = np.array(evaluator.accuracy)
    return AnytimeResult(
        samples=points,
        accuracy=accuracy,
        classes_seen=(first < points[:, None]).sum(1),
        A_auc=area_under_curve(points, accuracy),
        A_last=float(accuracy[-1]),
        prequential=predictors[0].result() if prequential else None,
        seconds=time.perf_counter() - start,
    )


class _Evaluate(SupervisedPlugin):
    """Evaluates after given mini-batches of an online stream, as Avalanche's PeriodicEval does at regular intervals.

    Args:
        test: all test samples.
        indices: indices of the samples to evaluate, by the number of mini-batches done.
        bar: progress bar that shows the last accuracy.
    """

    def __init__(self, test: AvalancheDataset, indices: dict[int, np.ndarray], bar: tqdm):
        super().__init__()
        self.test, self.indices, self.bar = test, indices, bar
        self.batches = 0
        self.accuracy: list[float] = []

    def after_training_exp(self, strategy, **kwargs):
        self.batches += 1
        if self.batches in self.indices:
            test = self.test.subset(self.indices[self.batches].tolist())
            # Data loaders draw from the global generator, which replay depends on in training.
            with torch.random.fork_rng(devices=[]):
                metrics = strategy.eval(benchmark_from_datasets(anytime=[test]).streams["anytime"])
            self.accuracy.append(metrics["Top1_Acc_Stream/eval_phase/anytime_stream"])
            self.bar.set_postfix_str(f"accuracy {100 * self.accuracy[-1]:.1f} %")
