"""``f2ocl train``: one pass over a folder, zip or tar of images."""

import argparse
import time
from collections.abc import Sequence
from typing import Any

import torch
from tqdm import tqdm

from avalanche_f2ocl.cli.evaluate import say_passed_over, score
from avalanche_f2ocl.cli.images import Unreadable, minibatches
from avalanche_f2ocl.cli.messages import counted, none_readable, one_line, say
from avalanche_f2ocl.cli.output import check_place, check_space
from avalanche_f2ocl.cli.stopping import Stopped, StopSignals
from avalanche_f2ocl.datasets.by_class import described, files_by_class, fingerprint, hold_out
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.models.hub import learned_file
from avalanche_f2ocl.models.loading import load_model
from avalanche_f2ocl.models.methods import METHODS, make_model
from avalanche_f2ocl.models.model_file import holds_backbone
from avalanche_f2ocl.models.saving import SavedModel
from avalanche_f2ocl.options import DEFAULT_BACKBONE
from avalanche_f2ocl.rng import generator


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Learns images and saves the model; returns a description of what it did."""
    same = args.go_on is not None and args.out.resolve() == args.go_on.resolve()
    check_place(args.out, replace=args.overwrite or same)
    source = ImageSource(args.images)
    files = files_by_class(source, "train")
    learned, held_out = hold_out(files, args.hold_out or 0)
    model, with_backbone = _model(args)
    check_space(args.out, model, len(set(files.classes)), with_backbone)
    say_passed_over(files)
    model.trained_on = [*model.trained_on, {"files": fingerprint(source, files), "hold_out": args.hold_out or 0}]
    order = torch.randperm(len(learned), generator=generator(args.seed, "order", model.batches)).tolist()
    if args.order == "classes":
        order.sort(key=lambda i: files.classes[learned[i]])
    order = [learned[i] for i in order]
    unreadable, started = Unreadable(args.strict, say), time.monotonic()
    count = _learn(args, model, source, files.names, files.classes, order, unreadable, with_backbone)
    result = {
        "file": str(args.out),
        "images": count,
        "unreadable": unreadable.names,
        "passed_over": files.passed_over,
        "classes": len(model.class_ids),
        "seconds": round(time.monotonic() - started, 1),
    }
    if held_out:
        pairs = [(source, files.names[i]) for i in held_out], [files.classes[i] for i in held_out]
        result["held_out"] = score(model, *pairs, 128, unreadable, args.workers, args.quiet)
    return result


def _model(args: argparse.Namespace) -> tuple[SavedModel, bool]:
    """The model to continue with or a new one, and whether the file also holds its backbone."""
    if args.go_on is None:
        options = {"seed": args.seed, **({"fit": args.fit} if args.fit else {}), **dict(args.option)}
        method, backbone = args.method or next(iter(METHODS)), args.backbone or DEFAULT_BACKBONE
        return make_model(method, backbone, args.weights, args.image_size, options, args.device), args.with_backbone
    fixed = {name: getattr(args, name) for name in ("method", "backbone", "image_size", "fit", "option")}
    if given := [name for name, value in fixed.items() if value]:
        names = ", ".join("--" + name.replace("_", "-") for name in given)
        raise ValueError(f"{names} cannot be given with --from: the file decides")
    path = learned_file(args.go_on)
    model = load_model(path, weights=args.weights, device=args.device)
    return model, args.with_backbone or holds_backbone(path)


def _learn(
    args: argparse.Namespace,
    model: SavedModel,
    source: ImageSource,
    names: Sequence[str],
    classes: Sequence[str],
    order: Sequence[int],
    unreadable: Unreadable,
    with_backbone: bool,
) -> int:
    """Learns images in a given order and saves the model, whatever ends the learning; returns how many were learned."""
    count = saved = 0

    def save() -> None:
        model.save(args.out, backbone=with_backbone)

    files = [(source, names[i]) for i in order]
    batches = minibatches(files, model.backbone.image_fit, args.batch_size, unreadable, args.workers)
    with StopSignals() as stop, tqdm(total=len(files), unit="image", disable=args.quiet) as bar:
        try:
            while True:
                stop.waiting = True
                stop.check()
                batch = next(batches, None)
                stop.waiting = False
                if batch is None:
                    break
                indices, pixels = batch
                model.learn(pixels, [classes[order[i]] for i in indices])
                count += len(indices)
                bar.update(len(indices))
                if args.save_every and count - saved >= args.save_every:
                    save()
                    saved = count
            if count == 0:
                raise ValueError(f"{args.images!r}: {none_readable(len(files))}")
            model.head.prepare()  # so that nobody who opens the file has to wait
            save()
        except Exception as error:
            stop.waiting = False
            batches.close()  # ends its processes before anything is written
            if count > saved:
                save()
            kept = (
                f"what was learned from {counted(count, 'image')} is in {args.out}"
                if count
                else "nothing has been learned"
            )
            if stop.number is not None:
                raise Stopped(stop.number, f"{Stopped(stop.number)}; {kept}") from None
            if count:
                raise RuntimeError(f"{error}; {kept}") from error
            raise
    return count


def text(result: dict[str, Any]) -> str:
    """For people."""
    unreadable = result["unreadable"]
    skipped = f", {described(unreadable)} could not be read," if unreadable else ""
    lines = [
        f"learned {counted(result['images'], 'image')}{skipped} in {result['seconds']} s; "
        f"{counted(result['classes'], 'class', 'classes')} known. "
        f"Saved: {result['file']}"
    ]
    if held_out := result.get("held_out"):
        lines.append(f"accuracy {100 * held_out['accuracy']:.2f} % on {counted(held_out['images'], 'image')} held out")
    return "\n".join(map(one_line, lines))
