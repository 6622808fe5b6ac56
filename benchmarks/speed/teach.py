"""How long it takes from a dropped picture to a prediction that knows it, on the page of `f2ocl app`.

    python -m benchmarks.speed.teach --weights vit_tiny.safetensors --images caltech101.zip

Photographs are taught one after the other, each as one of ten classes. The command measures the time for a picture file
to be read, learned and predicted, in milliseconds, as medians of five. "CPU" is the time that all cores spend on it,
whatever else runs.
"""

import argparse
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch

from avalanche_f2ocl.app.teacher import Teacher
from avalanche_f2ocl.datasets.by_class import files_by_class
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.models.methods import make_model
from benchmarks.runs.provenance import device_name

CLASSES, TIMES = 10, 5


def taught(teacher: Teacher, files: list[tuple[Path, str]], known: int) -> tuple[float, float]:
    """Milliseconds of wall-clock and of CPU time for one picture, once ``known`` pictures are known."""
    for start in range(sum(teacher.counts.values()), known, 10):
        for path, name in files[start : min(start + 10, known)]:
            teacher.teach([path], name)
    found = []
    for path, name in files[known : known + TIMES]:
        teacher.ask([path])  # solves for what was known before
        clock, work = time.perf_counter(), time.process_time()
        teacher.teach([path], name)
        answer = teacher.ask([path])[0]
        found.append((1000 * (time.perf_counter() - clock), 1000 * (time.process_time() - work)))
        assert answer.classes
    clocks, works = zip(*found, strict=True)
    return median(clocks), median(works)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", default="vit_tiny_patch16_224")
    parser.add_argument("--weights")
    parser.add_argument("--images", required=True, help="folder, zip or tar with <class>/*")
    parser.add_argument("--known", type=int, nargs="+", default=[20, 100, 200], help="pictures that are known already")
    args = parser.parse_args()
    source = ImageSource(args.images)
    listed = files_by_class(source, "train")
    by_class: dict[str, list[str]] = {}
    for name, own in zip(listed.names, listed.classes, strict=True):
        by_class.setdefault(own, []).append(name)
    chosen = sorted(by_class, key=lambda own: -len(by_class[own]))[:CLASSES]
    deepest = max(map(len, by_class.values()))
    turns = [(by_class[own][i], own) for i in range(deepest) for own in chosen if i < len(by_class[own])]
    turns = turns[: max(args.known) + TIMES]
    print(f"{device_name(torch.device('cpu'))}, {torch.get_num_threads()} threads, torch {torch.__version__}\n")
    with TemporaryDirectory() as folder:
        files = []
        for number, (name, own) in enumerate(turns):
            path = Path(folder) / f"{number}{Path(name).suffix}"
            with source.archive.open(name) as file:
                path.write_bytes(file.read())
            files.append((path, own))
        teacher = Teacher(make_model("best", args.backbone, args.weights), Path(folder) / "taught.safetensors")
        print("| pictures known | ms | CPU ms |\n|---:|---:|---:|")
        for known in sorted(args.known):
            clock, work = taught(teacher, files, known)
            print(f"| {known} | {clock:.0f} | {work:.0f} |", flush=True)


if __name__ == "__main__":
    main()
