"""A strategy's file: what it has learned, and where its run stands."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from avalanche_f2ocl.metrics import GroupMetric
from avalanche_f2ocl.model_file import Learned, check_origin, read_model_file, restore, write_model_file

if TYPE_CHECKING:
    from avalanche_f2ocl.base_strategy import OnlineStrategy

_RUN = {"skipped", "batches_done", "experiences_done", "evaluations", "metrics"}
_NO_INFLUENCE = {"eval_mb_size", "eval_every", "peval_mode", "on_bad_input"}
"""Options that change nothing that is learned."""


def learned(strategy: "OnlineStrategy") -> Learned:
    """What a strategy has learned."""
    return Learned(strategy.model, type(strategy).__name__, strategy.optimizer, strategy.own_tensors())


def save(strategy: "OnlineStrategy", path: str | Path, backbone: bool = False, min_class_count: int = 1) -> None:
    """See :meth:`avalanche_f2ocl.resumable.Resumable.save`."""
    run = {
        "skipped": strategy.skipped,
        "batches_done": strategy.clock.train_iterations,
        "experiences_done": strategy.clock.train_exp_counter,
        "evaluations": strategy.evaluations,
        "metrics": [metric.state() for metric in _group_metrics(strategy)],
    }
    write_model_file(learned(strategy), path, strategy.options, run, backbone, min_class_count)


def restore_learned(strategy: "OnlineStrategy", tensors: dict[str, Tensor], values: dict[str, Any], path) -> None:
    """Puts what a file's strategy learned into this one; see :func:`avalanche_f2ocl.model_file.restore`."""
    strategy.load_own_tensors(restore(learned(strategy), tensors, values, path))


def read_run(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """A strategy's file; see :func:`avalanche_f2ocl.model_file.read_model_file`."""
    return read_model_file(path, _RUN)


def check_same_run(strategy: "OnlineStrategy", values: Mapping[str, Any], path: str | Path) -> None:
    """Raises ``ValueError`` unless a checkpoint is of a run like the strategy's, with all its classes."""
    check_origin(learned(strategy), values, path)
    options, mine = values["options"], strategy.options
    names = sorted((options.keys() | mine.keys()) - _NO_INFLUENCE)
    other = [name for name in names if options.get(name) != mine.get(name)]
    if other:
        differences = ", ".join(f"{name}={options.get(name)!r} there, {mine.get(name)!r} here" for name in other)
        raise ValueError(f"{str(path)!r} was saved with other options: {differences}")
    if values["classes_left_out"]:
        raise ValueError(f"{str(path)!r} was saved without {values['classes_left_out']} classes: load it instead")
    if values["metrics"] and [m.name for m in _group_metrics(strategy)] != [m["name"] for m in values["metrics"]]:
        raise ValueError(f"{str(path)!r} was saved with the metrics {[m['name'] for m in values['metrics']]}")


def restore_run(strategy: "OnlineStrategy", values: Mapping[str, Any]) -> None:
    """Puts metrics and counts where they were."""
    strategy.skipped = values["skipped"]
    for metric, state in zip(_group_metrics(strategy), values["metrics"], strict=True):
        metric.load_state(state)


def _group_metrics(strategy: "OnlineStrategy") -> list[GroupMetric]:
    return [metric for metric in strategy.evaluator.metrics if isinstance(metric, GroupMetric)]
