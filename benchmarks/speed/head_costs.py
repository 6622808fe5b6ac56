"""Memory, update and solution of the heads on second moments, on random vectors of 100 classes and one core.

    python -m benchmarks.speed.head_costs --features 1536 2000 5000
"""

import argparse
import time

import torch

from avalanche_f2ocl.heads import LDAHead, RidgeHead

HEADS = {
    "LDA": LDAHead,
    "ridge by cross-validation": lambda dim: RidgeHead(dim, projection=0),
    "ridge of a given penalty": lambda dim: RidgeHead(dim, projection=0, ridge=100.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", nargs="+", type=int, default=[1536, 2000, 5000])
    args = parser.parse_args()
    torch.set_num_threads(1)
    print("| head | features | MB | update, ms | solution, s |\n|---|---:|---:|---:|---:|")
    for dim in args.features:
        vectors, rows = torch.randn(200, dim), torch.arange(200) % 100
        for name, make in HEADS.items():
            head = make(dim)
            head.add_rows(100)
            start = time.perf_counter()
            for part in torch.arange(200).split(10):
                head.update(vectors[part], rows[part])
            updated = time.perf_counter()
            head.logits(vectors[:10])
            update, solution = (updated - start) / 20 * 1e3, time.perf_counter() - updated
            memory = head.moment.numel() * 8 / 1e6
            print(f"| {name} | {dim} | {memory:.0f} | {update:.1f} | {solution:.2f} |", flush=True)


if __name__ == "__main__":
    main()
