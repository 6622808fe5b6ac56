"""One run over a stream: train on each group in mini-batches, evaluate on the groups so far."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from avalanche.benchmarks import CLScenario
from avalanche.training.templates import SupervisedTemplate
from tqdm import tqdm

from avalanche_f2ocl.evaluation.progress import CountImages
from avalanche_f2ocl.metrics.groups import AccuracyMatrix
from avalanche_f2ocl.ranks import is_first
from avalanche_f2ocl.streams.online import online_stream


@dataclass(frozen=True)
class GroupsResult:
    """Figures of merit of a run, as fractions.

    Attributes:
        T: accuracy matrix ``(n, n)``, NaN above the diagonal.
        A_n, A_n_samples, F_n, A_k, UB, random_key: metrics after the last group; None if the strategy does not have
            them, or if the test stream has no groups, see :class:`avalanche_f2ocl.metrics.groups.GroupMetric`.
        seconds: seconds of training and evaluation.
    """

    T: np.ndarray
    A_n: float | None
    A_n_samples: float | None
    F_n: float | None
    A_k: float | None
    UB: float | None
    random_key: float | None
    seconds: float


def run_online(strategy: SupervisedTemplate, benchmark: CLScenario, progress: bool | str = True) -> GroupsResult:
    """Trains a strategy on a benchmark online and evaluates it after each group.

    Samples keep the stream's order and come in mini-batches of ``strategy.train_mb_size``. After group i
    the test samples of groups 1 to i are evaluated, or all test samples if the test stream has other groups.

    Args:
        strategy: a strategy with :func:`avalanche_f2ocl.f2ocl_metrics` in its evaluator.
        benchmark: a benchmark, for example from :func:`avalanche_f2ocl.class_incremental_stream`.
        progress: whether to show a bar that counts training and test images; a text is the name of the run in it,
            by default that of the strategy's class.

    Raises:
        ValueError: the evaluator lacks the metrics.

    Example:
        >>> from avalanche.training.plugins import EvaluationPlugin
        >>> from avalanche_f2ocl import ViTNCM, class_incremental_stream, f2ocl_metrics
        >>> stream = class_incremental_stream("digits", groups=2, train_per_class=5, test_per_class=5)
        >>> strategy = ViTNCM(backbone="micro_vit", evaluator=EvaluationPlugin(*f2ocl_metrics()))
        >>> run_online(strategy, stream, progress=False).T.shape
        (2, 2)
    """
    matrix = next((m for m in strategy.evaluator.metrics if isinstance(m, AccuracyMatrix)), None)
    if matrix is None:
        raise ValueError("the strategy's evaluator has no AccuracyMatrix: make it EvaluationPlugin(*f2ocl_metrics())")
    start = time.perf_counter()
    test = benchmark.test_stream
    groups = len(benchmark.train_stream)
    tests = [test[: i + 1] if len(test) == groups else test for i in range(groups)]
    total = sum(len(experience.dataset) for stream in (benchmark.train_stream, *tests) for experience in stream)
    hidden = not (progress and is_first())
    name = progress if isinstance(progress, str) else type(strategy).__name__
    with tqdm(total=total, unit="img", desc=name, disable=hidden, mininterval=1) as bar:
        counter = CountImages(bar)
        strategy.plugins.append(counter)
        try:
            for group, experience in enumerate(benchmark.train_stream):
                online = online_stream([experience], strategy.train_mb_size)
                strategy.train(online, eval_streams=[])
                strategy.eval(tests[group])
                bar.set_postfix_str(f"group {group + 1}/{groups}, accuracy {100 * (matrix.result() or 0):.1f} %")
        finally:
            strategy.plugins.remove(counter)
    last = strategy.evaluator.get_last_metrics()
    names = ("A_n", "A_n_samples", "F_n", "A_k", "UB", "random_key")
    figures: dict[str, Any] = {name: last.get(f"{name}/eval_phase/{test.name}_stream") for name in names}
    figures = {name: None if value is None or np.isnan(value) else value for name, value in figures.items()}
    return GroupsResult(T=matrix.matrix(test.name), **figures, seconds=time.perf_counter() - start)
