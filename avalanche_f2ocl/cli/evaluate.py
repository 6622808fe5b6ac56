"""``f2ocl eval``: accuracy on a folder, zip or tar of images."""

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tqdm import tqdm

from avalanche_f2ocl.cli.images import ImageFile, Unreadable, minibatches
from avalanche_f2ocl.cli.messages import counted, none_readable, one_line, say
from avalanche_f2ocl.datasets.by_class import ClassFiles, described, files_by_class, fingerprint, hold_out
from avalanche_f2ocl.datasets.image_source import ImageSource, normal
from avalanche_f2ocl.models.loading import load_model
from avalanche_f2ocl.models.saving import SavedModel


def names_of(model: SavedModel) -> dict[int, str]:
    """A name for every class; a class without one is named by its id."""
    return {class_id: model.class_names.get(class_id, str(class_id)) for class_id in model.class_ids.tolist()}


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Accuracy over images, over classes and of each class, as shares; images of unknown classes count as wrong."""
    source = ImageSource(args.images)
    files = files_by_class(source, "train" if args.hold_out else "test")
    chosen = hold_out(files, args.hold_out)[1] if args.hold_out else range(len(files.names))
    model = load_model(args.file, weights=args.weights, device=args.device)
    say_passed_over(files)
    learned = {"files": fingerprint(source, files), "hold_out": args.hold_out or 0}
    if any(t["files"] == learned["files"] and not (t["hold_out"] == args.hold_out) for t in model.trained_on):
        say(
            "warning: the model has learned from these very images, so its accuracy on new ones is likely lower; "
            "train and evaluate with --hold-out 0.2, or give images that were not in training"
        )
    pairs = [(source, files.names[i]) for i in chosen], [files.classes[i] for i in chosen]
    unreadable = Unreadable(args.strict, say)
    return score(model, *pairs, args.batch_size, unreadable, args.workers, args.quiet)


def say_passed_over(files: ClassFiles) -> None:
    """Names files that are no images, and classes without images."""
    if files.passed_over:
        say(f"skipped, because not in a class folder or not an image: {described(files.passed_over)}")
    if files.empty:
        say(f"classes without images: {described(files.empty)}")


def score(
    model: SavedModel,
    images: Sequence[ImageFile],
    classes: Sequence[str],
    batch_size: int,
    unreadable: Unreadable,
    workers: int | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """Predicts images and compares the predictions with their classes.

    Args:
        model: a model that has learned something.
        images, classes: the images, and the names of their classes.
        batch_size, unreadable, workers: see :func:`avalanche_f2ocl.cli.images.minibatches`.
        quiet: whether to hide the progress bar.

    Raises:
        ValueError: none of the images can be read.
    """
    names = {class_id: normal(name) for class_id, name in names_of(model).items()}
    known, right, counts = set(names.values()), Counter[str](), Counter[str]()
    with tqdm(total=len(images), unit="image", disable=quiet) as bar:
        for indices, pixels in minibatches(images, model.backbone.image_fit, batch_size, unreadable, workers):
            for index, class_id in zip(indices, model.predict(pixels).tolist(), strict=True):
                right[classes[index]] += names[class_id] == classes[index]
                counts[classes[index]] += 1
            bar.update(len(indices))
    if not counts:
        raise ValueError(none_readable(len(images)))
    per_class = {name: right[name] / count for name, count in sorted(counts.items())}
    of_known = sum(count for name, count in counts.items() if name in known)
    return {
        "images": counts.total(),
        "accuracy": right.total() / counts.total(),
        "accuracy_of_known": right.total() / of_known if of_known else None,
        "accuracy_over_classes": sum(per_class.values()) / len(per_class),
        "unknown_classes": sorted(counts.keys() - known),
        "unreadable": list(unreadable.names),
        "per_class": per_class,
    }


def text(result: dict[str, Any]) -> str:
    """The result as readable text: the figures, and the classes with the lowest accuracy."""
    classes = counted(len(result["per_class"]), "class", "classes")
    lines = [
        f"accuracy {100 * result['accuracy']:.2f} % of {counted(result['images'], 'image')}, "
        f"{100 * result['accuracy_over_classes']:.2f} % as the mean of {classes}"
    ]
    if unknown := result["unknown_classes"]:
        of_known = result["accuracy_of_known"]
        known = "no class is known" if of_known is None else f"{100 * of_known:.2f} % on the images of known classes"
        lines.append(f"not learned: {described(unknown, 10)}; {known}")
    if unreadable := result["unreadable"]:
        lines.append(f"could not be read: {described(unreadable)}")
    wrong = [(name, share) for name, share in result["per_class"].items() if share < 1]
    if lowest := sorted(wrong, key=lambda item: item[1])[:5]:
        lines.append("lowest: " + ", ".join(f"{name} {100 * share:.0f} %" for name, share in lowest))
    return "\n".join(map(one_line, lines))
