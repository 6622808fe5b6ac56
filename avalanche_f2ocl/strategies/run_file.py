"""A strategy's file: what it has learned, how far its run has come, and whether another run may continue from it."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from avalanche_f2ocl.metrics.groups import GroupMetric
from avalanche_f2ocl.models.learned import Learned
from avalanche_f2ocl.models.model_file import check_origin, read_model_file, restore, write_model_file
from avalanche_f2ocl.models.resolved import resolved

_RUN = {"skipped", "batches_done", "experiences_done", "evaluations", "metrics"}
_NO_INFLUENCE = {"eval_mb_size", "on_bad_input"}
"""Options that affect neither what is learned nor when it is evaluated."""


def learned(strategy: Any) -> Learned:
    """Everything that a strategy has learned."""
    return Learned(strategy.model, type(strategy).__name__, strategy.optimizer, strategy.own_tensors())


def save(strategy: Any, path: str | Path, backbone: bool = False, min_class_count: int = 1) -> None:
    """Writes a strategy's file, see :meth:`avalanche_f2ocl.strategies.resuming.Resumable.save`."""
    strategy.evaluations += strategy._known_evaluations.passed(strategy.clock.train_iterations)
    run = {
        "skipped": strategy.skipped,
        "batches_done": strategy.clock.train_iterations,
        "experiences_done": strategy.clock.train_exp_counter,
        "evaluations": [evaluation.as_values() for evaluation in strategy.evaluations],
        "metrics": [metric.state() for metric in _group_metrics(strategy)],
    }
    write_model_file(learned(strategy), path, strategy.options, run, backbone, min_class_count)


def restore_learned(strategy: Any, tensors: dict[str, Tensor], values: dict[str, Any], path) -> None:
    """Restores what a file's strategy learned in this one; see :func:`avalanche_f2ocl.models.model_file.restore`."""
    strategy.load_own_tensors(restore(learned(strategy), tensors, values, path))


def read_run(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads a strategy's file, see :func:`avalanche_f2ocl.models.model_file.read_model_file`."""
    return read_model_file(path, _RUN)


def check_same_run(strategy: Any, values: Mapping[str, Any], path: str | Path) -> None:
    """Raises ``ValueError`` unless a checkpoint is of a run like the strategy's, with all its classes."""
    check_origin(learned(strategy), values, path)
    options, mine = values["options"], strategy.options
    # The values that these options led to are compared below.
    skipped = _NO_INFLUENCE | {"readout"} | ({"precision", "projection"} if "resolved" in values else set())
    names = sorted((options.keys() | mine.keys()) - skipped)
    other = [name for name in names if options.get(name) != mine.get(name)]
    if other:
        differences = ", ".join(f"{name}={options.get(name)!r} there, {mine.get(name)!r} here" for name in other)
        raise ValueError(f"{str(path)!r} was saved with other options: {differences}")
    here = resolved(strategy.model.backbone, strategy.model.head)
    there = {"readout": options.get("readout")} | values.get("resolved", {})
    for name, option in (("dtype", "precision"), ("projection", "projection"), ("readout", "readout")):
        if there.get(name, here[name]) != here[name]:
            raise ValueError(
                f"{str(path)!r} was learned with {name} {there[name]}, here it is {here[name]}: sums of the two do not "
                f"mix; make the strategy with {option}={there[name]!r}"
            )
    if there.get("threads", here["threads"]) != here["threads"]:
        warnings.warn(
            f"{str(path)!r} was written with {there['threads']} threads, here there are {here['threads']}: the run "
            "continues, but not bit for bit as without the interruption",
            stacklevel=3,
        )
    if values["classes_left_out"]:
        raise ValueError(f"{str(path)!r} was saved without {values['classes_left_out']} classes: load it instead")
    if values["metrics"] and [m.name for m in _group_metrics(strategy)] != [m["name"] for m in values["metrics"]]:
        raise ValueError(f"{str(path)!r} was saved with the metrics {[m['name'] for m in values['metrics']]}")


def restore_run(strategy: Any, values: Mapping[str, Any]) -> None:
    """Restores metrics and counts."""
    strategy.skipped = values["skipped"]
    for metric, state in zip(_group_metrics(strategy), values["metrics"], strict=True):
        metric.load_state(state)


def _group_metrics(strategy: Any) -> list[GroupMetric]:
    return [metric for metric in strategy.evaluator.metrics if isinstance(metric, GroupMetric)]
