"""Table 1: A_n and F_n of all methods over seeds and data sets.

    python -m benchmarks.paper.table1 --size small --data-dir DIR --weights vit_tiny.safetensors --seeds 0 1 2

``small`` has digits on the bundled ViT, and cifar100.zip (100/30 images a class) and caltech101.zip (all) on a
ViT-Ti at 112 px. ``full`` has the whole of CIFAR-100 and ImageNet-R, at the backbone's own size; run it once for each
backbone (``--backbone``, ``--weights``).
If interrupted, the command continues where it stopped. The table goes into benchmarks/README.md, and an overview into
docs/results.md.
"""

import argparse
from pathlib import Path

from benchmarks.runs.launch import launch
from benchmarks.runs.methods import METHODS, OF_THE_PAPER
from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import insert, load_runs, overview, write_tables


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=("small", "full"), default="small")
    parser.add_argument("--data-dir", type=Path, help="where cifar100.zip and caltech101.zip are")
    parser.add_argument("--backbone", help="default ViT-Ti (small) or ViT-B/16 augreg in21k (full)")
    parser.add_argument("--weights", help="local checkpoint of the backbone")
    parser.add_argument("--datasets", nargs="+", help="some of the size's data sets, by stem")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(OF_THE_PAPER))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, sharing the cores")
    parser.add_argument("--cache", type=Path, help="folder that keeps unprompted embeddings between runs")
    parser.add_argument("--device")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def data_sets(args: argparse.Namespace) -> dict[str, list[str]]:
    """The runner's arguments per data set."""
    default = {"small": "vit_tiny_patch16_224", "full": "vit_base_patch16_224.augreg_in21k"}[args.size]
    backbone = args.backbone or default
    vit = ["--backbone", backbone] + (["--weights", args.weights] if args.weights else [])
    folder = args.data_dir
    cifar = str(folder / "cifar100.zip") if folder else "cifar100"
    if args.size == "full":
        return {"cifar100": ["--dataset", cifar, *vit], "imagenet-r": ["--dataset", "imagenet-r", *vit]}
    sets = {
        "digits": ["--dataset", "digits", "--groups", "5", "--backbone", "micro_vit"],
        "cifar100": [
            "--dataset", cifar, *vit, "--image-size", "112", "--train-per-class", "100", "--test-per-class", "30",
        ],
    }  # fmt: skip
    if folder:
        caltech = ["--dataset", str(folder / "caltech101.zip"), "--fit", "squash"]
        sets["caltech101"] = [*caltech, *vit, "--image-size", "112"]
    return sets


def main() -> None:
    args = parse_args()
    sets = data_sets(args)
    chosen = args.datasets or list(sets)
    unknown = set(chosen) - set(sets)
    if unknown:
        raise SystemExit(f"--datasets {' '.join(sorted(unknown))}: allowed are {' '.join(sets)} (zips need --data-dir)")
    table = f"table1-{args.size}"
    common = ["--table", table, "--results", str(args.results)]
    common += ["--device", args.device] if args.device else []
    common += ["--cache", str(args.cache)] if args.cache else []
    runs = [
        [*sets[name], "--method", method, "--seed", str(seed), *common]
        for seed in args.seeds
        for name in chosen
        for method in args.methods
    ]
    failed = launch(runs, args.jobs)
    if failed == len(runs):
        raise SystemExit("every run failed")
    table_runs = load_runs(args.results / table)
    text = write_tables(args.results / table, table_runs, list(METHODS))
    print(text)
    if args.results == RESULTS:
        for page, part in (
            (RESULTS.parent / "README.md", text),
            (RESULTS.parents[1] / "docs" / "results.md", overview(table_runs, list(METHODS))),
        ):
            if f"<!-- {table} -->" in page.read_text():
                insert(page, table, part)
    if failed:
        raise SystemExit(f"{failed} of {len(runs)} runs failed")


if __name__ == "__main__":
    main()
