"""Saving, loading and resuming a strategy: what it has learned, never an image, never a pickle."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from timm.models import VisionTransformer
from torch import Tensor

from avalanche_f2ocl.config import check_positive_int
from avalanche_f2ocl.heads.second_moments import SecondMomentHead
from avalanche_f2ocl.loading import vit_from_state
from avalanche_f2ocl.metrics import GroupMetric
from avalanche_f2ocl.rows import ClassRows
from avalanche_f2ocl.safe_file import read_safe_file, write_safe_file

if TYPE_CHECKING:
    from avalanche_f2ocl.base_strategy import OnlineStrategy

FORMAT = 1
_BACKBONE = "backbone.vit."
_VALUES = {
    "strategy", "options", "backbone", "class_ids", "classes_left_out", "batches_done", "experiences_done",
    "evaluations", "metrics", "skipped",
}  # fmt: skip
_NO_INFLUENCE = {"eval_mb_size", "eval_every", "peval_mode", "on_bad_input"}
"""Options that change nothing that is learned."""


def save(strategy: "OnlineStrategy", path: str | Path, backbone: bool = False, min_class_count: int = 1) -> None:
    """See :meth:`avalanche_f2ocl.resumable.Resumable.save`."""
    check_positive_int("min_class_count", min_class_count)
    tensors = learned_tensors(strategy)
    left_out = 0
    if min_class_count > 1:
        kept = strategy.model.head.used("counts").cpu() >= min_class_count
        left_out = int((~kept).sum())
        names = _class_row_names(strategy)
        tensors = {name: t[kept[: len(t)]] if name in names else t for name, t in tensors.items()}
        rows = (~kept).nonzero().squeeze(1).to(strategy.device)
        for name, part in strategy.model.named_modules():
            if isinstance(part, SecondMomentHead):
                tensors[f"model.{name}.moment"] = part.moment_without(rows)
    if backbone:
        if strategy.model.backbone.precision != "float32":
            raise ValueError("backbone=True: weights in bfloat16 are not the backbone's; allowed in float32 alone")
        tensors |= {_BACKBONE + name: t for name, t in strategy.model.backbone.vit.state_dict().items()}
    values = {
        "format": FORMAT,
        "strategy": type(strategy).__name__,
        "options": strategy.options,
        "backbone": {
            "name": strategy.model.backbone.name,
            "image_size": strategy.model.backbone.image_size,
            "sha256": strategy.model.backbone.checksum,
        },
        "class_ids": tensors["model.classes.ids"].tolist(),
        "classes_left_out": left_out,
        "skipped": strategy.skipped,
        "batches_done": strategy.clock.train_iterations,
        "experiences_done": strategy.clock.train_exp_counter,
        "evaluations": strategy.evaluations,
        "metrics": [metric.state() for metric in _group_metrics(strategy)],
    }
    write_safe_file(path, tensors, values)


def learned_tensors(strategy: "OnlineStrategy") -> dict[str, Tensor]:
    """Everything learned, by name: the model without its backbone, the optimiser's state, the strategy's own."""
    state = strategy.model.state_dict()
    tensors = {f"model.{name}": t for name, t in state.items() if not name.startswith("backbone.")}
    for name, parameter in _trained(strategy):
        # Rows in use: spare ones hold nothing.
        for key, tensor in strategy.optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{name}.{key}"] = tensor[: len(state[name])]
    return tensors | {f"own.{name}": t for name, t in strategy.own_tensors().items()}


def read_checkpoint(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """A checkpoint's tensors and values.

    Raises:
        FileNotFoundError: no such file.
        ValueError: damaged, of another kind or of another version.
    """
    tensors, values = read_safe_file(path)
    version = values.get("format") if isinstance(values, dict) else None
    if version != FORMAT:
        raise ValueError(f"{str(path)!r} has format {version!r}: this version of avalanche_f2ocl reads {FORMAT}")
    if missing := _VALUES - values.keys():
        raise ValueError(f"{str(path)!r} is no checkpoint: it lacks {sorted(missing)}")
    return tensors, values


def saved_backbone(tensors: dict[str, Tensor], values: dict[str, Any]) -> str | VisionTransformer:
    """The backbone that is in a checkpoint, else the name of the one it was learned on."""
    name = values["backbone"]["name"]
    state = {n.removeprefix(_BACKBONE): t for n, t in tensors.items() if n.startswith(_BACKBONE)}
    return vit_from_state(name, state, values["backbone"]["image_size"]) if state else name


def restore(strategy: "OnlineStrategy", tensors: dict[str, Tensor], values: dict[str, Any], path: str | Path) -> None:
    """Puts a checkpoint into a strategy; checks everything before it changes anything.

    Raises:
        ValueError: it is from another strategy, configuration or backbone, or does not fit.
    """
    _check_origin(strategy, values, path)
    parts = {"model": {}, "optimizer": {}, "own": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        if not name.startswith(_BACKBONE):
            parts.get(part, {})[rest] = tensor
    _check_tensors(strategy, parts, path)
    model = strategy.model
    backbone = {name: t for name, t in model.state_dict().items() if name.startswith("backbone.")}
    model.load_state_dict(parts["model"] | backbone)
    strategy.optimizer.state.clear()
    for name, parameter in _trained(strategy):
        prefix = name + "."
        state = {k.removeprefix(prefix): t for k, t in parts["optimizer"].items() if k.startswith(prefix)}
        if state:
            strategy.optimizer.state[parameter] = {k: t.to(parameter.device) for k, t in state.items()}
    strategy.load_own_tensors(parts["own"])


def _check_origin(strategy: "OnlineStrategy", values: Mapping[str, Any], path: str | Path) -> None:
    if values["strategy"] != type(strategy).__name__:
        raise ValueError(f"{str(path)!r} is of {values['strategy']}, not of {type(strategy).__name__}")
    own, saved = strategy.model.backbone, values["backbone"]
    if saved["image_size"] != own.image_size:
        raise ValueError(
            f"{str(path)!r} was learned at {saved['image_size']} pixels a side, the backbone takes {own.image_size}"
        )
    if saved["sha256"] != own.checksum:
        raise ValueError(
            f"{str(path)!r} was learned on backbone {saved['name']!r} with other weights than this {own.name!r} has"
        )


def check_same_run(strategy: "OnlineStrategy", values: Mapping[str, Any], path: str | Path) -> None:
    """Raises ``ValueError`` unless a checkpoint is of a run like the strategy's, with all its classes."""
    _check_origin(strategy, values, path)
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


def _check_tensors(strategy: "OnlineStrategy", parts: dict[str, dict[str, Tensor]], path: str | Path) -> None:
    """Names, dtypes and shapes, the number of classes aside."""

    def refuse(problem: str):
        raise ValueError(f"{str(path)!r} does not fit {type(strategy).__name__}: {problem}")

    own = {n: t for n, t in strategy.model.state_dict().items() if not n.startswith("backbone.")}
    saved = parts["model"]
    if own.keys() != saved.keys():
        refuse(f"tensors {sorted(own.keys() ^ saved.keys())} are in one of them only")
    per_class = {name.removeprefix("model.") for name in _class_row_names(strategy) if name.startswith("model.")}
    classes = len(saved["classes.ids"])
    for name, tensor in saved.items():
        expected = (classes, *own[name].shape[1:]) if name in per_class else tuple(own[name].shape)
        if tuple(tensor.shape) != expected or tensor.dtype != own[name].dtype:
            refuse(f"{name} is {tensor.dtype} {tuple(tensor.shape)}, expected {own[name].dtype} {expected}")
    if len(saved["classes.ids"].unique()) != classes:
        refuse("a class id occurs twice")
    trained = dict(_trained(strategy))
    for name, tensor in parts["optimizer"].items():
        parameter, _, _ = name.rpartition(".")
        if parameter not in trained or len(tensor) > len(saved[parameter]):
            refuse(f"the optimiser's {name} belongs to nothing here")


def _class_row_names(strategy: "OnlineStrategy") -> set[str]:
    """Names of the saved tensors with a row per class."""
    modules = strategy.model.named_modules()
    rows = {f"{path}.{name}" for path, m in modules if isinstance(m, ClassRows) for name in m.row_names}
    optimiser = {
        f"optimizer.{name}.{key}"
        for name, parameter in _trained(strategy)
        if name in rows
        for key in strategy.optimizer.state.get(parameter, {})
    }
    return {f"model.{name}" for name in rows} | optimiser | {f"own.{name}" for name in strategy.own_tensors()}


def _trained(strategy: "OnlineStrategy") -> list[tuple[str, torch.nn.Parameter]]:
    return [(name, p) for name, p in strategy.model.named_parameters() if p.requires_grad]


def _group_metrics(strategy: "OnlineStrategy") -> list[GroupMetric]:
    return [metric for metric in strategy.evaluator.metrics if isinstance(metric, GroupMetric)]
