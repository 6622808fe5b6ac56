"""Memory and times of heads on second moments, with random vectors of 100 classes on one core.

    python -m benchmarks.speed.head_costs --features 960 1536 1920
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from avalanche_f2ocl.heads import LDAHead, RidgeHead
from benchmarks.runs.provenance import device_name

HEADS: dict[str, Callable] = {
    "LDA": LDAHead,
    "ridge by cross-validation": lambda dim: RidgeHead(dim, projection=0),
    "ridge of a given penalty": lambda dim: RidgeHead(dim, projection=0, ridge=100.0),
}
CLASSES, BATCH, SAMPLES, TURNS = 100, 10, 2000, 7
COLUMNS = ("head", "features", "MB", "update, ms", "solution, s", "first update and prediction after it, s", "next, ms")


def seconds(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def costs(make: Callable, dim: int) -> tuple[float, ...]:
    """MB of the moment, and of the inverse if there is one; ms of an update of ten; s of a solution; s of the first
    update of ten together with the logits of ten; and the median ms of this from then on."""
    draw = torch.Generator().manual_seed(0)
    vectors = torch.randn(SAMPLES + (TURNS + 1) * BATCH, dim, generator=draw)
    head = make(dim)
    head.add_rows(CLASSES)
    parts = torch.arange(len(vectors)).split(BATCH)

    def update(part: torch.Tensor) -> None:
        head.update(vectors[part], part % CLASSES)

    def turn(part: torch.Tensor) -> None:
        update(part)
        head.logits(vectors[:BATCH])

    trained = SAMPLES // BATCH
    plain = statistics.median(seconds(lambda part=part: update(part)) for part in parts[:trained])
    solution = seconds(lambda: head.logits(vectors[:BATCH]))
    first, *later = (seconds(lambda part=part: turn(part)) for part in parts[trained:])
    inverse = 0 if head._solution.inverse is None else head._solution.inverse.nbytes
    megabytes = (head.moment.nbytes + inverse) / 1e6
    return megabytes, plain * 1e3, solution, first, statistics.median(later) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", nargs="+", type=int, default=[960, 1536, 1920])
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{device_name(torch.device('cpu'))}, one core\n")
    print(f"| {' | '.join(COLUMNS)} |\n|---{'|---:' * (len(COLUMNS) - 1)}|")
    for dim in args.features:
        for name, make in HEADS.items():
            megabytes, plain, solution, first, later = costs(make, dim)
            figures = f"{megabytes:.0f} | {plain:.1f} | {solution:.2f} | {first:.2f} | {later:.1f}"
            print(f"| {name} | {dim} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
