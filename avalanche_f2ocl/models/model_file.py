"""Files of what has been learned: tensors, optimiser state and options; never an image, never a pickle."""

from collections.abc import Mapping, Set
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch import Tensor

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.backbone.families import AnyViT
from avalanche_f2ocl.backbone.weights import vit_from_state
from avalanche_f2ocl.extensions import EXTENSIBLE, find, needs
from avalanche_f2ocl.heads.ensemble import EnsembleHead
from avalanche_f2ocl.heads.second_moments import SecondMomentHead
from avalanche_f2ocl.heads.solution import take_solution
from avalanche_f2ocl.models.learned import Learned
from avalanche_f2ocl.models.resolved import resolved
from avalanche_f2ocl.options import HeadOptions
from avalanche_f2ocl.ranks import wait_for_all
from avalanche_f2ocl.safe_file import read_safe_file, write_safe_file

FORMAT = 1
_BACKBONE = "backbone.vit."
_NOT_IN_0_1 = (".distinct.buckets", "calibration.", "familiarity.")
"""Parts of the names of tensors that files of version 0.1 lack; they are zero then."""
_HEADS_SINCE_0_1 = ("blocks", "blocks_per_head", "grid", "vote", "penalty", "random_features", "gamma")
_VALUES = {"strategy", "options", "backbone", "class_ids", "classes_left_out"}


def write_model_file(
    learned: Learned,
    path: str | Path,
    options: Mapping[str, Any],
    run: Mapping[str, Any] | None = None,
    backbone: bool = False,
    min_class_count: int = 1,
) -> None:
    """Writes a file, whole or not at all.

    Args:
        learned: what has been learned.
        path: path of the file.
        options: options of the strategy or model, as JSON values.
        run: further values of a strategy's run; or all values of an earlier file of the same run.
        backbone: whether the file also holds the frozen weights.
        min_class_count: classes with fewer samples are left out.

    Raises:
        OSError: the file cannot be written; an old file is left as it was.
        ValueError, TypeError: ``min_class_count`` is no positive int, or leaves no class.
    """
    check_positive_int("min_class_count", min_class_count)
    model, tensors, left_out = learned.model, learned.tensors(), 0
    if min_class_count > 1:
        kept = model.head.used("counts").cpu() >= min_class_count
        left_out = int((~kept).sum())
        if left_out and not kept.any():
            raise ValueError(f"min_class_count={min_class_count}: no class has as many samples, so none would be left")
        names = learned.class_row_names()
        tensors = {name: t[kept[: len(t)]] if name in names else t for name, t in tensors.items()}
        rows = (~kept).nonzero().squeeze(1).to(model.device)
        for name, part in model.named_modules():
            if isinstance(part, SecondMomentHead):
                tensors |= {f"model.{name}.{key}": moment for key, moment in part.moments_without(rows).items()}
                if left_out:
                    take_solution(tensors, f"model.{name}.")  # it belongs to other sums
    if backbone:
        tensors |= {_BACKBONE + name: t for name, t in model.backbone.weights.state_dict().items()}
    class_ids = tensors["model.classes.ids"].tolist()
    values = {
        "format": FORMAT,
        "strategy": learned.kind,
        "options": dict(options),
        "needs": needs(options),
        "backbone": {
            "name": model.backbone.name,
            "image_size": model.backbone.image_size,
            "sha256": model.backbone.checksum,
        },
        "resolved": resolved(model.backbone, model.head),
        "class_ids": class_ids,
        "class_names": [[i, model.class_names[i]] for i in class_ids if i in model.class_names],
        "classes_left_out": left_out + dict(run or {}).get("classes_left_out", 0),
        "trained_on": model.trained_on,
    }
    write_safe_file(path, tensors, {**(run or {}), **values})


def read_model_file(path: str | Path, needed: Set[str] = frozenset()) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads a file's tensors and values.

    Args:
        path: path of the file.
        needed: names of values that must be there, such as those of a strategy's run.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, or of another kind or format.
    """
    wait_for_all()
    tensors, values = read_safe_file(path)
    version = values.get("format") if isinstance(values, dict) else None
    if version != FORMAT:
        raise ValueError(f"{str(path)!r} has format {version!r}: this version of avalanche_f2ocl reads {FORMAT}")
    if missing := (_VALUES | needed) - values.keys():
        raise ValueError(f"{str(path)!r} is no checkpoint: it lacks {sorted(missing)}")
    return tensors, values | {"options": _since_0_1(values["options"]) | values["options"]}


def _since_0_1(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that stand for what version 0.1 did before these options existed."""
    did: dict[str, Any] = {"fit": "squash"}
    if "head_features" in options:
        layers = options["head_features"] in ("layers", "ensemble")
        did |= {"blocks": 4, "blocks_per_head": 4, "vote": "equal"} if layers else {}
        own = {field.name: field.default for field in fields(HeadOptions)}
        did |= {name: own[name] for name in _HEADS_SINCE_0_1 if name not in did}
    return did | ({"max_drift": None, "zoom": 1.0} if "key_update" in options else {})


def check_needs(values: Mapping[str, Any], path: str | Path) -> None:
    """Raises ``ValueError`` if a file needs a user's own class or function that is not known here, and names it."""
    for option, name in values.get("needs", {}).items():
        if option in EXTENSIBLE and find(option, name) is None:
            raise ValueError(
                f"{str(path)!r} needs {option}={name!r}, which is not of avalanche_f2ocl: import it and call "
                f"avalanche_f2ocl.register({option!r}, ...) first, or install the package that declares it. No code is "
                "imported because a file names it"
            )


def holds_backbone(path: str | Path) -> bool:
    """Whether a file holds the backbone's weights; raises the errors of :func:`read_model_file`."""
    return any(name.startswith(_BACKBONE) for name in read_model_file(path)[0])


def saved_backbone(tensors: dict[str, Tensor], values: dict[str, Any]) -> str | AnyViT:
    """The backbone in a file, or the name of the backbone that was used in learning if its weights are not there."""
    name = values["backbone"]["name"]
    state = {n.removeprefix(_BACKBONE): t for n, t in tensors.items() if n.startswith(_BACKBONE)}
    return vit_from_state(name, state, values["backbone"]["image_size"]) if state else name


def restore(
    learned: Learned, tensors: dict[str, Tensor], values: dict[str, Any], path: str | Path
) -> dict[str, Tensor]:
    """Restores a file's tensors in a model and its optimiser; checks everything before it changes anything.

    Returns:
        The tensors that do not belong to the model.

    Raises:
        ValueError: the file is of another kind or backbone, or does not fit.
    """
    check_origin(learned, values, path)
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}, "own": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        if not name.startswith(_BACKBONE):
            parts.get(part, {})[rest] = tensor
    per_class, classes = learned.class_row_names(), len(parts["model"].get("classes.ids", ()))
    for name, tensor in learned.model.state_dict().items():
        if any(part in name for part in _NOT_IN_0_1):
            rows = (classes, *tensor.shape[1:]) if f"model.{name}" in per_class else tensor.shape
            parts["model"].setdefault(name, tensor.new_zeros(rows))
    for name, part in learned.model.named_modules():
        if isinstance(part, EnsembleHead):
            parts["model"].pop(f"{name}.sums", None)  # version 0.1 kept its heads' sums a second time
    _check_tensors(learned, parts, path)
    model, optimizer = learned.model, learned.optimizer
    backbone = {name: t for name, t in model.state_dict().items() if name.startswith("backbone.")}
    model.load_state_dict(parts["model"] | backbone)
    model.class_names = {int(class_id): str(name) for class_id, name in values.get("class_names", [])}
    model.trained_on = list(values.get("trained_on", []))
    if optimizer is None:
        return parts["own"]
    optimizer.state.clear()
    for name, parameter, _ in learned.trained():
        prefix = name + "."
        state = {k.removeprefix(prefix): t for k, t in parts["optimizer"].items() if k.startswith(prefix)}
        if state:
            optimizer.state[parameter] = {k: t.to(parameter.device) for k, t in state.items()}
    return parts["own"]


def check_origin(learned: Learned, values: Mapping[str, Any], path: str | Path) -> None:
    """Raises ``ValueError`` unless a file is of the same kind and backbone."""
    if values["strategy"] != learned.kind:
        raise ValueError(f"{str(path)!r} is of {values['strategy']}, not of {learned.kind}")
    own, saved = learned.model.backbone, values["backbone"]
    if saved["image_size"] != own.image_size:
        raise ValueError(
            f"{str(path)!r} was learned at {saved['image_size']} pixels a side, the backbone takes {own.image_size}"
        )
    if saved["sha256"] != own.checksum:
        raise ValueError(
            f"{str(path)!r} was learned on backbone {saved['name']!r} with other weights than this {own.name!r} has"
        )


def _check_tensors(learned: Learned, parts: dict[str, dict[str, Tensor]], path: str | Path) -> None:
    """Checks names, dtypes and shapes, apart from the number of classes."""

    def refuse(problem: str):
        raise ValueError(f"{str(path)!r} does not fit {learned.kind}: {problem}")

    own = {n: t for n, t in learned.model.state_dict().items() if not n.startswith("backbone.")}
    saved, heads = dict(parts["model"]), {}
    for name, part in learned.model.named_modules():
        if isinstance(part, SecondMomentHead):  # with a solution or without
            take_solution(own, f"{name}.")
            heads[name] = part, take_solution(saved, f"{name}.")
    if own.keys() != saved.keys():
        refuse(f"tensors {sorted(own.keys() ^ saved.keys())} are in one of them only")
    per_class = {name.removeprefix("model.") for name in learned.class_row_names() if name.startswith("model.")}
    classes = len(saved["classes.ids"])
    for name, tensor in saved.items():
        expected = (classes, *own[name].shape[1:]) if name in per_class else tuple(own[name].shape)
        if tuple(tensor.shape) != expected or tensor.dtype != own[name].dtype:
            refuse(f"{name} is {tensor.dtype} {tuple(tensor.shape)}, expected {own[name].dtype} {expected}")
    for name, (part, solution) in heads.items():
        if problem := part.solution_problem(solution, classes):
            refuse(f"{name}: {problem}")
    if len(saved["classes.ids"].unique()) != classes:
        refuse("a class id occurs twice")
    trained = {name for name, _, _ in learned.trained()}
    for name, tensor in parts["optimizer"].items():
        parameter, _, _ = name.rpartition(".")
        if parameter not in trained or tensor.dim() == 0 or len(tensor) > len(saved[parameter]):
            refuse(f"the optimiser's {name} belongs to nothing here")
        if tensor.dim() > 1 and tensor.shape[1:] != saved[parameter].shape[1:]:
            refuse(f"the optimiser's {name} is {tuple(tensor.shape)}, the parameter {tuple(saved[parameter].shape)}")
