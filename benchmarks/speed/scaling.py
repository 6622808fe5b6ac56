"""Images a second with one and more processes that share each mini-batch, and the bytes that they exchange.

    python -m benchmarks.speed.scaling --ranks 1 2

Each process has one thread and uses gloo on this machine (on CUDA each has a device and uses NCCL). Weights and images
are random. Bytes are those counted by the network interfaces between the first and the last mini-batch, for each
process and mini-batch. Another column has the bytes that must be sent: the embeddings of the process's images, once
without and twice with prompts, and the gradient of the prompts that the mini-batch used. The command writes
``results/scaling/scaling-<device>.{json,csv,md}``.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import distributed as dist
from torch import multiprocessing

from avalanche_f2ocl import F2OCLStrategy
from avalanche_f2ocl.backbone.devices import default_device
from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import insert, write_rows
from benchmarks.speed.setting import random_stream, train, vit_tiny_112


def network_bytes() -> int:
    """Sent so far, by all interfaces of this machine."""
    lines = Path("/proc/net/dev").read_text().splitlines()[2:]
    return sum(int(line.split(":")[1].split()[8]) for line in lines)


def learn(rank: int, ranks: int, folder: str, batch_size: int, batches: int) -> None:
    """One process's work; the first writes seconds and bytes a mini-batch."""
    torch.set_num_threads(1)
    if torch.cuda.is_available():
        torch.cuda.set_device(rank)
    if ranks > 1:
        store = f"file://{folder}/store"
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, init_method=store, rank=rank, world_size=ranks)
    torch.manual_seed(0)
    strategy = F2OCLStrategy(backbone=vit_tiny_112(), evaluator=None, train_mb_size=batch_size)
    stream = random_stream(batch_size * batches)
    train(strategy, stream)
    start, sent = time.perf_counter(), network_bytes()
    train(strategy, stream)
    if strategy.device.type == "cuda":
        torch.cuda.synchronize()
    took, sent = time.perf_counter() - start, network_bytes() - sent
    if rank == 0:
        Path(folder, "found").write_text(f"{took / batches} {sent / batches / ranks}")
    if ranks > 1:
        dist.barrier()
        dist.destroy_process_group()


def measure(ranks: int, batch_size: int, batches: int) -> tuple[float, float]:
    """Seconds and bytes a process sends, by mini-batch."""
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(learn, (ranks, folder, batch_size, batches), nprocs=ranks)
        seconds, sent = map(float, Path(folder, "found").read_text().split())
    return seconds, sent


def must_cross(ranks: int, batch_size: int, dim: int = 192, length: int = 20) -> float:
    """Bytes that a process has to send by mini-batch: its embeddings, three times, and a prompt's gradient."""
    embeddings = 3 * (batch_size / ranks) * dim * 4 * (ranks - 1)
    return embeddings + 2 * (ranks - 1) / ranks * length * dim * 4


def rows(ranks: Sequence[int], sizes: Sequence[int], batches: int) -> list[dict[str, str]]:
    """The table."""
    found = []
    for size in sizes:
        rates = {}
        for count in ranks:
            seconds, sent = measure(count, size, batches)
            rates[count] = size / seconds
            row = {"mini-batch": str(size), "processes": str(count), "images a second": f"{rates[count]:.0f}"}
            row |= {"by one process": f"{rates[count] / rates[ranks[0]]:.2f}"}
            row |= {"kB sent": f"{sent / 1e3:.1f}", "kB that must cross": f"{must_cross(count, size) / 1e3:.1f}"}
            found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--sizes", nargs="+", type=int, default=[10, 64], help="images in a mini-batch")
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    name = f"scaling-{default_device().type}"
    text = write_rows(args.results / "scaling", name, rows(args.ranks, args.sizes, args.batches))
    print(text)
    if args.results == RESULTS:
        insert(RESULTS.parent / "README.md", name, text)


if __name__ == "__main__":
    main()
