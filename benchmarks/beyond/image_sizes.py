"""Larger images or two passes? One pass in quarters and the recommended settings, by size of the images.

    python -m benchmarks.beyond.image_sizes --data-dir DIR --weights vit_tiny_patch16_224.safetensors

Held-out training images, as in ``benchmarks.beyond.features``, with an untrained prompt. Sizes are shares of the size
that the backbone was trained at, 224 px (digits: 32 px). Accuracy is in per cent.
"""

from collections.abc import Sequence
from itertools import product

from avalanche_f2ocl.backbone.load import load_backbone
from avalanche_f2ocl.options import Precision
from benchmarks.beyond.features import RECOMMENDED, WHOLE, Loaded, Pass, Trial, load, run
from benchmarks.runs.runner import parse_args

TABLE = "image_sizes"
SHARES = {"1/2": 1 / 2, "5/7": 5 / 7, "all": 1.0}
"""Sizes of images: 112, 160 and 224 px for a ViT of 224 px."""
CHOICES: dict[str, tuple[Pass, ...]] = {"one pass, quarters": (Pass(grid=2),), "as recommended": (WHOLE, RECOMMENDED)}
VARIANTS = [f"{share} of the size, {choice}" for share, choice in product(SHARES, CHOICES)]


def load_sizes(arguments: Sequence[str], precision: Precision) -> list[Loaded]:
    """The same images for backbones of all sizes, in the order of ``SHARES``."""
    args = parse_args([*arguments, "--table", TABLE, "--method", "f2ocl"])
    _, *images = load(arguments, precision)
    own = load_backbone(args.backbone, args.weights)
    patch = own.vit.patch_embed.patch_size[0]
    sizes = [patch * round(share * own.image_size / patch) for share in SHARES.values()]
    return [(load_backbone(args.backbone, args.weights, size, precision=precision), *images) for size in sizes]


def trials(loaded: list[Loaded], seed: int) -> dict[str, float]:
    """Accuracy by variant, in per cent."""
    figures = []
    for each in loaded:
        trial = Trial(*each, seed)
        figures += [round(trial.accuracy(passes, 4), 4) for passes in CHOICES.values()]
    return dict(zip(VARIANTS, figures, strict=True))


if __name__ == "__main__":
    run(__doc__, TABLE, VARIANTS, trials, load_sizes)
