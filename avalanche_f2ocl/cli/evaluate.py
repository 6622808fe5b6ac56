"""``f2ocl eval``: accuracy on a folder or zip of images."""

import argparse
from collections import Counter
from typing import Any

from tqdm import tqdm

from avalanche_f2ocl.cli.images import labelled, minibatches
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.models.loading import load_model
from avalanche_f2ocl.models.saving import SavedModel


def names_of(model: SavedModel) -> dict[int, str]:
    """A name for every class: its id where none was given."""
    return {class_id: model.class_names.get(class_id, str(class_id)) for class_id in model.class_ids.tolist()}


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Accuracy over images and over classes, and of each class, as shares; unknown classes count as wrong."""
    source = ImageSource(args.images)
    files, classes = labelled(source, "test")
    model = load_model(args.file, weights=args.weights, device=args.device)
    names = names_of(model)
    images = [(source, name) for name in files]
    right: Counter[str] = Counter()
    with tqdm(total=len(images), unit="image", disable=args.quiet) as bar:
        for indices, pixels in minibatches(images, model.backbone.image_size, args.batch_size):
            for index, class_id in zip(indices, model.predict(pixels).tolist(), strict=True):
                right[classes[index]] += names[class_id] == classes[index]
            bar.update(len(indices))
    counts = Counter(classes)
    per_class = {name: right[name] / count for name, count in sorted(counts.items())}
    return {
        "images": len(files),
        "accuracy": sum(right.values()) / len(files),
        "accuracy_over_classes": sum(per_class.values()) / len(per_class),
        "unknown_classes": sorted(set(classes) - set(names.values())),
        "per_class": per_class,
    }


def text(result: dict[str, Any]) -> str:
    """For people: the figures, and the classes with the lowest accuracy."""
    lines = [
        f"accuracy {100 * result['accuracy']:.2f} % on {result['images']} images, "
        f"{100 * result['accuracy_over_classes']:.2f} % over {len(result['per_class'])} classes"
    ]
    if unknown := result["unknown_classes"]:
        lines.append(f"{len(unknown)} classes have not been learned: {', '.join(unknown[:10])}")
    lowest = sorted(result["per_class"].items(), key=lambda item: item[1])[:5]
    lines.append("lowest: " + ", ".join(f"{name} {100 * share:.0f} %" for name, share in lowest))
    return "\n".join(lines)
