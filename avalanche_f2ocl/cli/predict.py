"""``f2ocl predict``: the likeliest classes of images."""

import argparse
from collections.abc import Iterator
from typing import Any

from tqdm import tqdm

from avalanche_f2ocl.cli.evaluate import names_of
from avalanche_f2ocl.cli.images import Unreadable, minibatches, unlabelled
from avalanche_f2ocl.cli.messages import none_readable, one_line, say
from avalanche_f2ocl.datasets.by_class import described
from avalanche_f2ocl.models.loading import load_model


def run(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yields, for each image as soon as it is predicted, its path and the likeliest classes with probabilities.

    With ``--reject`` it also says whether the image looks like any of the learned classes.

    Raises:
        FileNotFoundError, ValueError: there is no such path, no image there, or none that can be read.
    """
    images, others = unlabelled(args.images)
    if others:
        say(f"skipped, because not an image: {described(others)}")
    model = load_model(args.file, weights=args.weights, device=args.device)
    names, unreadable = names_of(model), Unreadable(args.strict, say)
    with tqdm(total=len(images), unit="image", disable=args.quiet) as bar:
        fit = model.backbone.image_fit
        for indices, pixels in minibatches(images, fit, args.batch_size, unreadable, args.workers):
            if args.reject is None:
                ids, probabilities = model.topk(pixels, args.topk)
                known = [None] * len(ids)
            else:
                ids, probabilities, is_known, _ = model.answers(pixels, args.topk, args.reject)
                known = is_known.tolist()
            rows = zip(indices, ids.tolist(), probabilities.tolist(), known, strict=True)
            for index, own_ids, shares, one_known in rows:
                source, name = images[index]
                classes = [
                    {"class": names[class_id], "probability": round(share, 4)}
                    for class_id, share in zip(own_ids, shares, strict=True)
                ]
                if one_known is None:
                    yield {"image": str(source.path / name), "classes": classes}
                else:
                    yield {"image": str(source.path / name), "known": one_known, "classes": classes}
            bar.update(len(indices))
    if len(unreadable.names) == len(images):
        raise ValueError(none_readable(len(images)))


def text(result: dict[str, Any]) -> str:
    """The result as a line of text, also for ``cut``, with parts separated by tabs."""
    parts = [result["image"]] if result.get("known", True) else [result["image"], "none of these"]
    for c in result["classes"]:
        parts += [c["class"], f"{c['probability']:.3f}"]
    return "\t".join(map(one_line, parts))
