"""Photographs decoded from the disk while the backbone works, compared with the same images in memory; and memory use.

    python -m benchmarks.speed.from_disk --backbones vit_tiny_patch16_224 vit_small_patch16_224 --files 1000 50000

The photographs are synthetic: clouds of noise of 500 x 375 pixels, as JPEG of some 40 kB. Backbones have random
weights, which take as long as trained ones. Memory is the peak proportional set size (shared memory counts in parts) of
the process and those that decode for it, while ViT-NCM on micro_vit learns a stream of these files. The command writes
``results/from_disk/<part>.{json,csv,md}``, and the tables go into docs/speed.md.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

import numpy as np
import timm
from PIL import Image

from avalanche_f2ocl import F2OCLStrategy, ViTNCM, class_incremental_stream, online_stream
from benchmarks.runs import runner
from benchmarks.runs.tables import insert, write_rows

TABLE, PAGE = "from_disk", Path(__file__).parents[2] / "docs" / "speed.md"
CLASSES, MADE = 10, 400
METHODS = {"vit-ncm": ViTNCM, "best": F2OCLStrategy.best}


def make_photographs(folder: Path, count: int) -> None:
    """Makes ``train/<class>/`` with ``count`` files and ``test/<class>/`` with ten; most are links to the same few."""
    draw = np.random.default_rng(0)
    for i in range(min(count, MADE) + CLASSES):
        octaves = [draw.normal(0, 60 / 2**k, (3 * 2**k, 4 * 2**k, 3)) for k in range(7)]
        layers = [
            np.stack(
                [np.asarray(Image.fromarray(o[..., c]).resize((500, 375), Image.Resampling.BICUBIC)) for c in range(3)],
                -1,
            )
            for o in octaves
        ]
        pixels = (128 + sum(layers)).clip(0, 255).astype(np.uint8)
        split, number = ("test", i - min(count, MADE)) if i >= min(count, MADE) else ("train", i)
        path = folder / split / f"class_{number % CLASSES}" / f"{number:07d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path, quality=90)
    for i in range(MADE, count):
        first = folder / "train" / f"class_{i % CLASSES}" / f"{i % MADE:07d}.jpg"
        os.link(first, first.with_name(f"{i:07d}.jpg"))


def throughput(backbone: str, method: str, images: int, rounds: int) -> dict[str, object]:
    """Images a second in training, taking turns between memory and disk; medians."""
    vit = timm.create_model(backbone, num_classes=0)
    speeds = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        make_photographs(Path(folder), images)
        streams = {
            place: class_incremental_stream(folder, groups=2, image_size=224, in_memory=place == "memory")
            for place in ("memory", "disk")
        }
        for _ in range(rounds):
            for place, stream in streams.items():
                strategy, begun = METHODS[method](backbone=vit, evaluator=None), time.perf_counter()
                strategy.train(online_stream(stream.train_stream, 10), eval_streams=[])
                speeds[place].append(images / (time.perf_counter() - begun))
    ratio = median(disk / memory for disk, memory in zip(speeds["disk"], speeds["memory"], strict=True))
    figures = {place: round(median(values), 1) for place, values in speeds.items()}
    return {"backbone": backbone, "method": method, **figures, "disk / memory": round(ratio, 3)}


def peak_memory(files: int) -> dict[str, object]:
    """Peak memory in MB while ``files`` files are learned, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        make_photographs(Path(folder), files)
        command = [sys.executable, "-m", "benchmarks.speed.from_disk", "--learn", folder]
        return {"files": files, **json.loads(subprocess.check_output(command))}


def learn(folder: str) -> dict[str, float]:
    """Learns a folder; returns memory by the parts that hold it."""
    stream = class_incremental_stream(folder, groups=2, in_memory=False)
    listed = _proportional_mb()
    strategy, peak, begun = ViTNCM(backbone="micro_vit", evaluator=None), 0.0, time.perf_counter()
    count = 0
    for experience in stream.train_stream:
        for mini in online_stream([experience], 10):
            strategy.train(mini, eval_streams=[])
            count += 10
            if count % 200 == 0:
                peak = max(peak, _proportional_mb())
    seconds = time.perf_counter() - begun
    return {"listed_mb": round(listed), "peak_mb": round(peak), "images_a_second": round(count / seconds)}


def _proportional_mb() -> float:
    kilobytes = 0
    for pid in ["self", *(str(process.pid) for process in multiprocessing.active_children())]:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kilobytes / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbones", nargs="*", default=["vit_tiny_patch16_224"], help="timm names; none for no part")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--images", type=int, default=300, help="learned in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", nargs="*", type=int, default=[1000, 50_000], help="how many; none for no part")
    parser.add_argument("--results", type=Path, default=runner.RESULTS)
    parser.add_argument("--learn", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.learn:
        print(json.dumps(learn(args.learn)))
        return
    parts = {
        "memory": [peak_memory(files) for files in args.files],
        "throughput": [throughput(b, m, args.images, args.rounds) for b in args.backbones for m in args.methods],
    }
    for name, rows in parts.items():
        if rows:
            print(write_rows(args.results / TABLE, name, rows))
    if args.results == runner.RESULTS:
        tables = sorted((args.results / TABLE).glob("*.md"))
        insert(PAGE, "from-disk", "\n".join(path.read_text() for path in tables))


if __name__ == "__main__":
    main()
