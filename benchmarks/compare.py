"""Which method suits your pictures? Accuracy, forgetting and costs of each method, on your own data set.

    python -m benchmarks.compare --dataset pictures/ --backbone vit_tiny_patch16_224 --methods vit-ncm f2ocl-best

The data set is a folder, zip or tar with train/<class>/* and test/<class>/*, or a name that the runner knows. Each
method has one run for each seed, in a process of its own, so that its costs are not mixed with those of others. If
interrupted, the command continues where it stopped; further methods or seeds are added to the existing results. It
writes table.md, table.csv and costs.png into ``--out``.
"""

import argparse
import json
from pathlib import Path
from statistics import mean, stdev
from typing import get_args

from avalanche_f2ocl.backbone import load_vit
from avalanche_f2ocl.datasets.loading import PUBLISHED
from avalanche_f2ocl.options import Fit, Precision
from benchmarks.runs.cost_chart import Point, draw_costs
from benchmarks.runs.launch import launch_all
from benchmarks.runs.methods import METHODS
from benchmarks.runs.streams import BOUNDARY_FREE, STREAMS, make_stream
from benchmarks.runs.tables import cost_row, load_runs, write_rows

DEFAULT = ("vit-ncm", "vit-lda", "vit-ridge-blocks", "f2ocl-either", "f2ocl-best")
NAMES = ("digits", "cifar100", "imagenet-r", *PUBLISHED)
RUNS = "runs"


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", required=True, help=f"folder, zip or tar, or one of {', '.join(NAMES)}")
    parser.add_argument("--backbone", required=True, help="timm name with tag, or 'micro_vit'")
    parser.add_argument("--weights", help="local checkpoint; default is timm's download")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=DEFAULT, metavar="METHOD")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--stream", choices=STREAMS, default="groups")
    parser.add_argument("--groups", type=int, default=5, help="of classes, one after the other")
    parser.add_argument("--every", type=int, default=1000, help="images between evaluations of streams without groups")
    parser.add_argument("--image-size", type=int)
    parser.add_argument("--fit", choices=get_args(Fit), default="auto", help="of photographs to squares")
    parser.add_argument("--train-per-class", type=int)
    parser.add_argument("--test-per-class", type=int)
    parser.add_argument("--precision", choices=get_args(Precision), default="float32", help="of the frozen backbone")
    parser.add_argument("--device")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, sharing the cores")
    parser.add_argument("--out", type=Path, help="folder of the results; default runs/compare-<data set>")
    args = parser.parse_args(argv)
    if args.dataset not in NAMES and not Path(args.dataset).exists():
        parser.error(f"--dataset {args.dataset}: no such path; names are {', '.join(NAMES)}")
    args.out = args.out or Path("runs") / f"compare-{Path(args.dataset).stem}"
    return args


def settings(args: argparse.Namespace) -> dict[str, str | int]:
    """The settings that all runs of a folder share, by the runner's arguments."""
    names = ("dataset", "backbone", "weights", "stream", "image_size", "fit", "train_per_class", "test_per_class")
    given = {name: getattr(args, name) for name in (*names, "device")}
    given |= {"options": json.dumps({"precision": args.precision})}
    given |= {"every": args.every} if args.stream in BOUNDARY_FREE else {"groups": args.groups}
    return {name: value for name, value in given.items() if value is not None}


def check_settings(args: argparse.Namespace) -> None:
    """Raises ``SystemExit`` if the folder has runs with other settings, which the table would mix with these."""
    path, mine = args.out / "settings.json", settings(args)
    if path.exists():
        there = json.loads(path.read_text())
        if other := [name for name in sorted(there.keys() | mine.keys()) if there.get(name) != mine.get(name)]:
            differences = ", ".join(f"{name} {there.get(name)} there, {mine.get(name)} now" for name in other)
            raise SystemExit(f"{args.out} holds runs of other settings ({differences}): take another --out")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(mine, indent=1) + "\n")


def check_inputs(args: argparse.Namespace) -> None:
    """Raises ``SystemExit`` where pictures, groups or backbone are not as every run needs them."""
    try:
        make_stream(argparse.Namespace(**vars(args), seed=args.seeds[0], held_out=None))
        load_vit(args.backbone, args.weights, args.image_size)
    except (OSError, TypeError, ValueError) as error:
        raise SystemExit(f"{error}") from None


def runs(args: argparse.Namespace) -> list[list[str]]:
    """The runner's arguments, all methods of a seed before the next seed."""
    shared = [part for name, value in settings(args).items() for part in (f"--{name.replace('_', '-')}", str(value))]
    shared += ["--results", str(args.out), "--table", RUNS]
    return [[*shared, "--method", method, "--seed", str(seed)] for seed in args.seeds for method in args.methods]


def publish(out: Path) -> None:
    """Writes the table and the plot of results so far, best method first."""
    found = {method: records for (_, _, method), records in load_runs(out / RUNS).items()}
    if not found:
        return
    rows = [{"method": method, **cost_row(records)} for method, records in found.items()]
    accuracy = list(rows[0])[2]
    rows.sort(key=lambda row: -float(row[accuracy].split()[0]))
    print(write_rows(out, "table", rows))
    points = {}
    for method, records in found.items():
        values = [record[accuracy] for record in records]
        costs = (mean(record[f"{part}_seconds_per_1000"] for record in records) for part in ("train", "test"))
        points[method] = Point(mean(values), stdev(values) if len(values) > 1 else 0, *costs)
    draw_costs(points, accuracy, out / "costs.png")


def main(argv: list[str] | None = None) -> None:
    args = parse_args(argv)
    check_inputs(args)
    check_settings(args)
    launch_all(runs(args), args.jobs, lambda: publish(args.out))
    print(f"{args.out}/table.md, table.csv, costs.png")


if __name__ == "__main__":
    main()
