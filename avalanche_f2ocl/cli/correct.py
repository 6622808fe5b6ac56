"""``f2ocl rename``, ``merge``, ``forget``, ``unlearn`` and ``relabel``: corrections of what a file has learned."""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor
from tqdm import tqdm

from avalanche_f2ocl.cli.evaluate import names_of
from avalanche_f2ocl.cli.images import Unreadable, minibatches, unlabelled
from avalanche_f2ocl.cli.messages import counted, none_readable, one_line, say
from avalanche_f2ocl.cli.output import check_place
from avalanche_f2ocl.datasets.by_class import described
from avalanche_f2ocl.datasets.image_source import normal
from avalanche_f2ocl.models.class_names import UnknownClass, unknown
from avalanche_f2ocl.models.loading import load_model
from avalanche_f2ocl.models.saving import SavedModel


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Makes one correction and writes the file, whole or not at all; returns what has changed.

    Raises:
        OSError, ValueError: the file cannot be read or written, or the correction is not possible.
        UnknownClass: a class is not known.
    """
    check_place(args.file, replace=True)
    model = load_model(args.file, weights=args.weights, device=args.device)
    before = named_counts(model)
    unreadable = _CORRECTIONS[args.command](model, args)
    after = named_counts(model)
    if model.batches:
        model.head.prepare()
    model.save_again(args.file)
    changed = {name: after.get(name, 0) for name in [*before, *after] if before.get(name) != after.get(name)}
    return {"file": str(args.file), "classes": len(after), "changed": changed, "unreadable": unreadable}


def text(result: dict[str, Any]) -> str:
    """The result as readable text."""
    changed = "; ".join(f"{name}: {counted(images, 'image')}" for name, images in result["changed"].items())
    known = counted(result["classes"], "class", "classes")
    lines = [f"{changed or 'nothing has changed'}. {known} known. Saved: {result['file']}"]
    if unreadable := result["unreadable"]:
        lines.append(f"could not be read: {described(unreadable)}")
    return "\n".join(map(one_line, lines))


def named_counts(model: SavedModel) -> dict[str, int]:
    """Number of images learned, by name of the class."""
    names = names_of(model)
    return {names[class_id]: images for class_id, images in model.class_counts.items()}


def class_id_of(model: SavedModel, text: str) -> int:
    """The id of the class with this name, or else with this id.

    Raises:
        UnknownClass: there is no such class.
    """
    ids = {normal(name): class_id for class_id, name in names_of(model).items()}
    if normal(text) in ids:
        return ids[normal(text)]
    if text.removeprefix("-").isdecimal() and int(text) in ids.values():
        return int(text)
    raise unknown(text, ids)


def _rename(model: SavedModel, args: argparse.Namespace) -> list[str]:
    model.rename(class_id_of(model, args.name), normal(args.new))
    return []


def _merge(model: SavedModel, args: argparse.Namespace) -> list[str]:
    model.merge(class_id_of(model, args.name), class_id_of(model, args.into))
    return []


def _forget(model: SavedModel, args: argparse.Namespace) -> list[str]:
    for class_id in [class_id_of(model, name) for name in dict.fromkeys(args.names)]:
        model.forget(class_id)
    return []


def _unlearn(model: SavedModel, args: argparse.Namespace) -> list[str]:
    label, unreadable = class_id_of(model, args.label), Unreadable(args.strict, say)
    for pixels in _pixels(model, args, unreadable):
        model.unlearn(pixels, label=label)
    return unreadable.names


def _relabel(model: SavedModel, args: argparse.Namespace) -> list[str]:
    label, unreadable = class_id_of(model, args.label), Unreadable(args.strict, say)
    for pixels in _pixels(model, args, unreadable):
        try:
            new: int | str = class_id_of(model, args.to)
        except UnknownClass:
            new = normal(args.to)
        model.relabel(pixels, label, new)
    return unreadable.names


_CORRECTIONS: dict[str, Callable[[SavedModel, argparse.Namespace], list[str]]] = {
    "rename": _rename,
    "merge": _merge,
    "forget": _forget,
    "unlearn": _unlearn,
    "relabel": _relabel,
}
"""The corrections by name; each returns the names of files that it could not read."""


def _pixels(model: SavedModel, args: argparse.Namespace, unreadable: Unreadable) -> Iterator[Tensor]:
    """Mini-batches of the images, ``(B, 3, S, S)`` uint8.

    Raises:
        FileNotFoundError, ValueError: there is no such path, no image there, or none that can be read.
    """
    images, others = unlabelled(args.images)
    if others:
        say(f"skipped, because not an image: {described(others)}")
    with tqdm(total=len(images), unit="image", disable=args.quiet) as bar:
        for indices, pixels in minibatches(images, model.backbone.image_fit, args.batch_size, unreadable, args.workers):
            yield pixels
            bar.update(len(indices))
    if len(unreadable.names) == len(images):
        raise ValueError(none_readable(len(images)))
