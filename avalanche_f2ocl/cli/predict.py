"""``f2ocl predict``: the likeliest classes of images."""

import argparse
from typing import Any

from tqdm import tqdm

from avalanche_f2ocl.cli.evaluate import names_of
from avalanche_f2ocl.cli.images import minibatches, unlabelled
from avalanche_f2ocl.models.loading import load_model


def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    """For each image its path and the likeliest classes with their probabilities."""
    images = unlabelled(args.images)
    model = load_model(args.file, weights=args.weights, device=args.device)
    names, results = names_of(model), []
    with tqdm(total=len(images), unit="image", disable=args.quiet) as bar:
        for indices, pixels in minibatches(images, model.backbone.image_size, args.batch_size):
            ids, probabilities = model.topk(pixels, args.topk)
            for index, own_ids, shares in zip(indices, ids.tolist(), probabilities.tolist(), strict=True):
                source, name = images[index]
                classes = [
                    {"class": names[class_id], "probability": round(share, 4)}
                    for class_id, share in zip(own_ids, shares, strict=True)
                ]
                results.append({"image": str(source.path / name), "classes": classes})
            bar.update(len(indices))
    return results


def text(results: list[dict[str, Any]]) -> str:
    """For people and for ``cut``: a line per image, its parts separated by tabs."""
    return "\n".join(
        "\t".join([r["image"], *(f"{c['class']}\t{c['probability']:.3f}" for c in r["classes"])]) for r in results
    )
