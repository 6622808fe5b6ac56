"""Do runs that are killed, even while they write, and resumed end like uninterrupted runs?"""

import os
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from itertools import cycle, islice, product
from pathlib import Path

import torch
from avalanche.benchmarks import CLScenario, split_online_stream
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import CheckpointPlugin, class_incremental_stream, f2ocl_metrics, safe_file
from avalanche_f2ocl.safe_file import read_safe_file, write_safe_file
from avalanche_f2ocl.strategies.base import BaseStrategy
from avalanche_f2ocl.strategies.run_file import learned
from benchmarks.runs.methods import METHODS, make_strategy

GROUPS = 3
CALLBACKS = (
    "before_training_iteration", "before_forward", "after_backward", "after_update", "after_training_iteration",
)  # fmt: skip
WRITE_STEPS = ("save_file", "_to_disk", "os.replace")


class Killer(SupervisedPlugin):
    """Kills its process in a callback of a mini-batch.

    Args:
        batch: number of the mini-batch, from 0.
        callback: a callback of Avalanche, or a step in writing the first file after this mini-batch.
    """

    def __init__(self, batch: int, callback: str):
        super().__init__()
        self.batch = batch
        if callback in WRITE_STEPS:
            self.before_training_iteration = lambda strategy, **kwargs: self._kill_in_writing(strategy, callback)
        else:
            setattr(self, callback, lambda strategy, **kwargs: self._kill(strategy))

    def _kill(self, strategy):
        if strategy.clock.train_iterations == self.batch:
            kill()

    def _kill_in_writing(self, strategy, step):
        if strategy.clock.train_iterations == self.batch:
            owner = os if step == "os.replace" else safe_file
            setattr(owner, step.removeprefix("os."), kill)


def kill(*args) -> None:
    """Ends this process like a power cut."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_a_child(work: Callable[[], object]) -> int:
    """Forks, runs ``work`` there on one thread; returns 0, the exit status, or minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        status = 0
        try:
            torch.set_num_threads(1)
            work()
        except BaseException:
            traceback.print_exc()
            status = 1
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def script(
    make: Callable[..., BaseStrategy], stream: CLScenario, path: Path, plain: bool = False, plugins: tuple = ()
) -> tuple[BaseStrategy, list[dict]]:
    """A user's script: a strategy, a checkpoint after each mini-batch, an evaluation after each group."""
    plugins = [*plugins, CheckpointPlugin(path, every_batches=1)]
    strategy = make(plugins=plugins, evaluator=EvaluationPlugin(*f2ocl_metrics()))
    strategy.resume(path, missing_ok=True)
    results = []
    for i, experience in enumerate(stream.train_stream[:GROUPS]):
        online = split_online_stream([experience], 10, shuffle=False)
        strategy.train(experience if plain else online, eval_streams=[])
        results.append(strategy.eval(stream.test_stream[: i + 1]))
    return strategy, results


def finish(make: Callable[..., BaseStrategy], stream: CLScenario, path: Path, plain: bool, out: Path) -> None:
    """Runs the script to its end; writes what it learned, returned and measured to ``out``."""
    strategy, results = script(make, stream, path, plain)
    metrics = [metric.state() for metric in strategy.evaluator.metrics]
    write_safe_file(out, learned(strategy).tensors(), {"results": results, "metrics": metrics})


def survives(
    make: Callable[..., BaseStrategy], stream: CLScenario, plain: bool, batch: int, callback: str, whole: Path
) -> bool:
    """Whether a run killed there and resumed ends bit for bit as the uninterrupted one.

    Args:
        make: makes the strategy from ``plugins`` and ``evaluator``.
        stream: the benchmark.
        plain: whether to use plain experiences instead of an online stream.
        batch, callback: those of :class:`Killer`.
        whole: file with the result of the uninterrupted run, which is made if it does not exist.

    Raises:
        RuntimeError: a run failed, or was not killed.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "run", Path(folder) / "resumed"
        if not whole.exists() and in_a_child(lambda: finish(make, stream, Path(folder) / "unused", plain, whole)):
            raise RuntimeError("the uninterrupted run failed")
        if in_a_child(lambda: script(make, stream, path, plain, (Killer(batch, callback),))) != -signal.SIGKILL:
            raise RuntimeError(f"the run was not killed in {callback} of mini-batch {batch}")
        if in_a_child(lambda: finish(make, stream, path, plain, out)):
            return False
        return same(read_safe_file(whole), read_safe_file(out))


def same(one: tuple, other: tuple) -> bool:
    """Whether two files hold the same, bit for bit."""
    (tensors, values), (others, other_values) = one, other
    return (
        values == other_values
        and tensors.keys() == others.keys()
        and all(torch.equal(tensors[name], others[name]) for name in tensors)
    )


def cases(count: int) -> Iterator[tuple[str, bool, int, str]]:
    """Method, plain or online, mini-batch, callback: every method once before any comes again."""
    methods = [method for method in METHODS if not method.startswith("er")]
    callbacks = cycle([*CALLBACKS, *WRITE_STEPS])
    kinds = cycle(product((False, True), methods))
    for i, ((plain, method), callback) in enumerate(zip(kinds, callbacks, strict=False)):
        if i == count:
            return
        yield method, plain, 1 + (5 * i) % (4 * GROUPS - 2), callback


def count_survivals(tried: int) -> int:
    """How many of ``tried`` kills the runs survive."""
    stream = class_incremental_stream("digits", 5, train_per_class=20, test_per_class=5)
    with tempfile.TemporaryDirectory() as folder:
        return sum(
            survives(
                lambda method=method, **options: make_strategy(method, backbone="micro_vit", **options),
                stream,
                plain,
                batch,
                callback,
                Path(folder) / f"{method}-{plain}",
            )
            for method, plain, batch, callback in islice(cases(tried), tried)
        )
