"""Heads on second moments against prompts and frozen features, on streams with and without boundaries.

    python -m benchmarks.beyond --data-dir DIR --weights vit_tiny_patch16_224.safetensors --jobs 2

Parts (``--parts``): ``search``, each method's options on held-out training images of CIFAR-100; ``cifar100`` and
``caltech101``, groups of classes, all methods; ``streams``, accuracy at any time without boundaries; ``digits``, all
streams, on the bundled ViT; ``stale``, what the sums lose because prompts move while they accumulate. All heads of a
method learn in one training. If interrupted, the command continues where it stopped. Tables go into
benchmarks/README.md.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from avalanche_f2ocl.evaluation.anytime import AnytimeResult
from avalanche_f2ocl.evaluation.plots import plot_anytime
from benchmarks.runs.launch import launch
from benchmarks.runs.methods import LAYERS_0_1
from benchmarks.runs.runner import RESULTS
from benchmarks.runs.streams import BOUNDARY_FREE
from benchmarks.runs.tables import load_runs, markdown, spread, table_rows, to_readme, write_csv

TABLE = "beyond"
PRECISION = {"precision": "bfloat16"}

Z_HEADS = {
    "ncm-z": {},
    "lda-z": {"head": "lda"},
    "lda-zq": {"head": "lda", "head_features": "zq"},
    "ridge-layers": {"head": "ridge", "head_features": "layers", "projection": 0, **LAYERS_0_1},
}
SHARED_HEADS = {f"f2ocl-shared-{name}": options for name, options in Z_HEADS.items()}
F2OCL_HEADS = {f"f2ocl-{name}": options for name, options in Z_HEADS.items()}
RANDOM_HEADS = {f"random-prompt-{name}": options for name, options in Z_HEADS.items()}
VIT_HEADS = {
    "vit-ncm": {"head_features": "q"},
    "vit-lda": {"head": "lda", "head_features": "q"},
    "vit-ridge": {"head": "ridge", "head_features": "q", "projection": 2000},
    "vit-lda-layers": {"head": "lda", "head_features": "layers", **LAYERS_0_1},
    "vit-ridge-layers-projected": {"head": "ridge", "head_features": "layers", "projection": 2000, **LAYERS_0_1},
}
TRAININGS = {
    "f2ocl-best-0.1": SHARED_HEADS,
    "vit-ridge-layers": VIT_HEADS,
    "shared-prompt": {},
    "dualprompt-ncm": {},
    "f2ocl-ridge-ensemble": F2OCL_HEADS,
    "random-prompt-ridge-ensemble": RANDOM_HEADS,
}
"""Trained methods, and the heads that learn in the same training."""
ORDER = [name for method, heads in TRAININGS.items() for name in (method, *heads)]
FROZEN = ("vit-ncm", "vit-lda", "vit-ridge", "vit-ridge-layers")
REFERENCES = (*FROZEN, "shared-prompt", "dualprompt-ncm", "random-prompt-ridge-ensemble")

SEARCH = {
    "f2ocl-best-0.1": [{}, {"lr": 0.03}, {"lr": 0.3}, {"lr_decay": 0.5}, {"temperature": 1.0}],
    "f2ocl-ridge-ensemble": [{}],
    "shared-prompt": [
        *({"lr": lr, "scale": 20.0} for lr in (0.001, 0.003, 0.01, 0.03)),
        *({"lr": lr, "scale": 10.0} for lr in (0.003, 0.01, 0.03)),
        *({"lr": lr, "scale": 5.0} for lr in (0.01, 0.03)),
        *({"lr": 0.01, "scale": scale} for scale in (2.5, 40.0)),
    ],
    "vit-ridge-layers": [{}],
}
ANYTIME = ("f2ocl-best-0.1", "f2ocl", "vit-ncm", "vit-lda", "vit-ridge", "vit-ridge-layers", "shared-prompt")


def runs_of(part: str, args: argparse.Namespace) -> list[list[str]]:
    """The runner's arguments."""
    vit = ["--backbone", "vit_tiny_patch16_224", "--image-size", "112"]
    vit += ["--weights", args.weights] if args.weights else []
    cifar = ["--dataset", f"{args.data_dir}/cifar100.zip", *vit, "--test-per-class", "30"]
    caltech = ["--dataset", f"{args.data_dir}/caltech101.zip", *vit, "--fit", "squash"]
    digits = ["--dataset", "digits", "--backbone", "micro_vit", "--groups", "5"]

    def run(method: str, folder: str, data: list[str], seed: int, more: list[str] = (), **options) -> list[str]:
        common = ["--table", f"{TABLE}/{folder}", "--method", method, "--seed", str(seed)]
        return [*data, *common, "--options", json.dumps(options), *more]

    def with_heads(method: str, folder: str, data: list[str], seed: int, **options) -> list[str]:
        heads = ["--heads", json.dumps(TRAININGS[method])] if TRAININGS[method] else []
        return run(method, folder, data, seed, heads, **options)

    if part == "search":
        data = [*cifar[:-2], "--train-per-class", "50", "--held-out", "30"]
        return [
            with_heads(method, f"search/{named(options)}", data, args.search_seed, **PRECISION, **options)
            for method, variants in SEARCH.items()
            for options in variants
        ]
    if part == "cifar100":
        data = [*cifar, "--train-per-class", "100"]
        return [with_heads(method, "groups", data, seed, **PRECISION) for seed in args.seeds for method in TRAININGS]
    if part == "caltech101":
        return [with_heads(method, "groups", caltech, args.seeds[0], **PRECISION) for method in TRAININGS]
    if part == "streams":
        data = [*cifar, "--train-per-class", "100"]
        return [
            run(method, f"streams/{stream}", [*data, "--stream", stream], args.seeds[0], every, **PRECISION)
            for stream, every in (("si-blurry", ["--every", "2000"]), ("long-tailed", ["--every", "200"]))
            for method in ANYTIME
        ]
    ours = ("f2ocl-best-0.1", "vit-ridge-layers")
    return [with_heads(method, "groups", digits, seed) for seed in args.seeds for method in ours] + [
        run(method, f"streams/{stream}", [*digits, "--stream", stream], args.seeds[0], ["--every", "200"])
        for stream in BOUNDARY_FREE
        for method in ("f2ocl-best-0.1", "f2ocl", "vit-ncm", "vit-ridge-layers")
    ]


PARTS = ("cifar100", "streams", "caltech101", "digits", "search")


def named(options: dict) -> str:
    """A folder's name for options."""
    return ",".join(f"{name}={value}" for name, value in options.items()) or "default"


def anytime_rows(folder: Path) -> list[dict[str, str]]:
    """A_auc and A_last by stream, data set and method."""
    rows = []
    for stream in BOUNDARY_FREE:
        runs = load_runs(folder / stream)
        for dataset, backbone in sorted({key[:2] for key in runs}):
            for method in ANYTIME:
                records = runs.get((dataset, backbone, method))
                if records:
                    seeds = " ".join(str(record["seed"]) for record in records)
                    row = {"stream": stream, "dataset": dataset, "method": method, "seeds": seeds}
                    rows.append(row | {name: spread(records, name) for name in ("A_auc", "A_last")})
    return rows


def draw_anytime(folder: Path) -> None:
    """Curves of the first seed by stream and data set, ``<stream>-<dataset>.png``."""
    for stream in BOUNDARY_FREE:
        runs = load_runs(folder / stream)
        for dataset, backbone in sorted({key[:2] for key in runs}):
            found = {method: runs.get((dataset, backbone, method)) for method in ANYTIME}
            curves = {method: curve(records[0]) for method, records in found.items() if records}
            if curves:
                plot_anytime(curves, folder / f"{stream}-{dataset}.png")


def curve(record: dict) -> AnytimeResult:
    """A record's curve, as fractions."""
    names = ("samples", "accuracy", "classes_seen")
    samples, accuracy, seen = (np.array(record[name]) for name in names)
    A_auc, A_last = record["A_auc"] / 100, record["A_last"] / 100
    return AnytimeResult(samples, accuracy / 100, seen, A_auc, A_last, None, record["seconds"])


def search_rows(folder: Path) -> list[dict[str, str]]:
    """A_n on held-out images by method and options."""
    rows = []
    for path in sorted(folder.iterdir()):
        for (_, _, method), records in load_runs(path).items():
            rows.append({"method": method, "options": path.name, "A_n": spread(records, "A_n")})
    return sorted(rows, key=lambda row: (ORDER.index(row["method"]), row["options"]))


def plain(rows: list[dict[str, str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|---|" + "---:|" * (len(rows[0]) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row.values()) + " |" for row in rows])


def write(results: Path) -> None:
    """Writes the tables of all results so far, beside the results and in benchmarks/README.md."""
    folder = results / TABLE
    tables = {
        "groups": (table_rows(load_runs(folder / "groups"), ORDER, references=REFERENCES), markdown),
        "streams": (anytime_rows(folder / "streams"), plain),
        "search": (search_rows(folder / "search") if (folder / "search").exists() else [], plain),
    }
    draw_anytime(folder / "streams")
    for name, (rows, text) in tables.items():
        if rows:
            write_csv(folder / f"{name}.csv", rows)
            (folder / f"{name}.md").write_text(text(rows) + "\n")
            print(text(rows))
            to_readme(results, f"{TABLE}-{name}", text(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="where cifar100.zip and caltech101.zip are")
    parser.add_argument("--weights", help="local checkpoint of the ViT-Ti")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[3, 4, 5])
    parser.add_argument("--search-seed", type=int, default=11)
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, sharing the cores")
    parser.add_argument("--cache", type=Path, help="folder that keeps unprompted embeddings between runs")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    if args.data_dir is None and set(args.parts) != {"digits"}:
        parser.error("--data-dir: only --parts digits goes without")
    common = ["--results", str(args.results)] + (["--cache", str(args.cache)] if args.cache else [])
    runs = [[*run, *common] for part in args.parts for run in runs_of(part, args)]
    failed = launch(runs, args.jobs)
    write(args.results)
    if failed:
        raise SystemExit(f"{failed} of {len(runs)} runs failed")


if __name__ == "__main__":
    main()
