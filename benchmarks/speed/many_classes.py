"""The time of a mini-batch of ten with few and with many classes; images are scored before they are learned.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.many_classes

CPU time of ViT-NCM on the bundled ViT, median over mini-batches of noise.
"""

import argparse
import time
from statistics import median

import torch

from avalanche_f2ocl import ViTNCMModel

BATCH, FILL = 10, 500
"""Number of images in a mini-batch that is timed, and in one that brings new classes."""


def step_ms(classes: int, steps: int = 60) -> float:
    """CPU milliseconds of a mini-batch of known classes."""
    draw = torch.Generator().manual_seed(0)
    model, taken = ViTNCMModel("micro_vit", device="cpu"), []

    def noise(count: int) -> torch.Tensor:
        return torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=draw)

    for part in torch.arange(classes).split(FILL):
        model.learn(noise(len(part)), part)
    for _ in range(steps):
        images, labels = noise(BATCH), torch.randint(0, classes, (BATCH,), generator=draw)
        start = time.process_time()
        model.learn(images, labels)
        taken.append(time.process_time() - start)
    return 1000 * median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", nargs="+", type=int, default=[100, 10_000])
    args = parser.parse_args()
    print("| classes | ms |\n|---:|---:|")
    for classes in args.classes:
        print(f"| {classes} | {step_ms(classes):.1f} |")


if __name__ == "__main__":
    main()
