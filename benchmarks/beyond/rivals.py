"""Every method by its name on every stream: accuracy, forgetting, computing time and bytes kept.

    python -m benchmarks.beyond.rivals --data-dir DIR --weights vit_tiny_patch16_224.safetensors --jobs 2

The streams are those of ``benchmarks.beyond.never_below``, whose runs of ``best()`` and of its frozen half count here,
too; on streams without boundaries accuracy is measured at any time. Each method has a run of its own, so that its costs
are not mixed with those of others. With ``--cache`` runs are faster and have no costs; ``--costs`` measures only costs,
for seeds that were run with a cache. If interrupted, the command continues where it stopped. The tables go into
benchmarks/README.md.
"""

import argparse
import json
from pathlib import Path

from benchmarks.beyond.never_below import OTHER_TABLE as TABLE
from benchmarks.beyond.never_below import TABLE as NEVER_BELOW
from benchmarks.beyond.never_below import streams
from benchmarks.runs.costs import COSTS
from benchmarks.runs.launch import launch_all
from benchmarks.runs.methods import METHODS
from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import Runs, cost_row, load_runs, to_readme, write_rows

ON_FROZEN_FEATURES = (
    "vit-ncm", "slda", "fecam", "klda-2000", "randumb-2000", "f-oal", "g-acil-2000", "g-acil-scaled-2000",
    "ranpac-2000", "ranpac-scaled-2000", "layup", "layup-scaled",
)  # fmt: skip
TRAINED = (
    "linear-mask", "er500", "lwf-task-free", "l2p-mask", "dualprompt-mask", "coda-prompt", "single-prompt", "mvp",
    "f2ocl",
)  # fmt: skip
OURS = ("f2ocl-either", "vit-ridge-blocks", "f2ocl-best")
ALONGSIDE = {"f2ocl-either": {"f2ocl": {"head_features": "z"}}}
"""With a cache, heads that learn in another method's training."""
EVERY = {"cifar100-long-tailed": 500, "cifar100-si-blurry": 2000}
"""Images between two evaluations of streams without boundaries."""


def all_runs(results: Path, stream: str) -> Runs:
    """The runs on a stream with their costs, and those of ``benchmarks.beyond.never_below`` with other seeds.

    The latter measure accuracy by groups, so they do not count on streams without boundaries.
    """
    runs = load_runs(results / TABLE / stream)
    for key, timed in load_runs(results / TABLE / stream / "costs").items():
        costs = {record["seed"]: {name: record[name] for name in (*COSTS, "device")} for record in timed}
        for record in runs.get(key, []):
            record |= costs.get(record["seed"], {})
    if stream in EVERY:
        return runs
    for key, records in load_runs(results / NEVER_BELOW / stream).items():
        if key[2] not in ("vit-ridge-blocks", "f2ocl-best"):
            continue
        own = runs.setdefault(key, [])
        known = {record["seed"] for record in own}
        own += [record | dict.fromkeys(COSTS) for record in records if record["seed"] not in known]
        own.sort(key=lambda record: record["seed"])
    return runs


def publish(results: Path, names: list[str]) -> None:
    """Writes tables of results so far, one of accuracies and one of costs: a row a method, a column a stream."""
    merit: dict[str, dict[str, str]] = {}
    costs: dict[str, dict[str, str]] = {}
    for stream in names:
        for (_, _, method), records in all_runs(results, stream).items():
            row = cost_row(records)
            seeds, accuracy, other, *spent = row.values()
            merit.setdefault(method, {})[stream] = f"{accuracy} / {other} ({len(seeds.split())})"
            costs.setdefault(method, {})[stream] = " / ".join(spent)
    if not merit:
        return
    columns = [stream for stream in names if any(stream in cells for cells in merit.values())]
    texts = []
    for name, cells in (("merit", merit), ("costs", costs)):
        rows = [
            {"method": method} | {stream: cells[method].get(stream, "-") for stream in columns}
            for method in METHODS
            if method in cells
        ]
        texts.append(write_rows(results / TABLE, name, rows))
    text = "\n\n".join(texts)
    print(text)
    to_readme(results, TABLE, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="where the zips are; digits need none")
    parser.add_argument("--weights", help="local checkpoint of the ViT-Ti; digits and traffic signs need none")
    parser.add_argument("--seeds", nargs="+", type=int, default=[3, 4, 5])
    parser.add_argument("--streams", nargs="+", help="default all")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=[*ON_FROZEN_FEATURES, *TRAINED, *OURS], metavar="METHOD"
    )
    parser.add_argument("--precision", default="float32", choices=("bfloat16", "float32"), help="of the frozen ViT")
    fast = parser.add_mutually_exclusive_group()
    fast.add_argument("--cache", type=Path, help="folder for unprompted embeddings of earlier runs; no costs then")
    fast.add_argument("--costs", action="store_true", help="costs alone, of seeds that were run with a cache")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, sharing the cores")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    data = streams(args)
    if unknown := set(args.streams or ()) - set(data):
        parser.error(f"--streams {' '.join(sorted(unknown))}: allowed are {' '.join(data)}")
    chosen = args.streams or list(data)
    for stream in chosen:
        path = data[stream][1]
        if path != "digits" and not Path(path).exists():
            parser.error(f"--data-dir {args.data_dir}: {stream} needs {Path(path).name} there")
        if "--weights" in data[stream] and args.weights is None:
            parser.error(f"--weights: {stream} needs the ViT-Ti's")
    runs = [
        [*data[stream], "--results", str(args.results), "--method", method]
        + ["--table", f"{TABLE}/{stream}/costs" if args.costs else f"{TABLE}/{stream}"]
        + ["--seed", str(seed), "--options", json.dumps({"precision": args.precision})]
        + (["--every", str(EVERY[stream])] if stream in EVERY else [])
        + (["--cache", str(args.cache)] if args.cache else [])
        + (["--heads", json.dumps(ALONGSIDE[method])] if args.cache and method in ALONGSIDE else [])
        for seed in args.seeds
        for stream in chosen
        for method in args.methods
        if not (args.cache and any(method in heads for heads in ALONGSIDE.values()))
    ]
    launch_all(runs, args.jobs, lambda: publish(args.results, list(data)))


if __name__ == "__main__":
    main()
