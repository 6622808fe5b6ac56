"""What each choice of F2OCL gains: one option is changed at a time.

    python -m benchmarks.paper.ablation --jobs 2 -- --dataset DIR/cifar100.zip --backbone vit_tiny_patch16_224 \\
        --weights FILE --image-size 112 --train-per-class 50 --test-per-class 20

What follows ``--`` goes to the runner. The table goes into benchmarks/README.md.
"""

from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import insert
from benchmarks.runs.variants import Variants, run_variants, variants_parser, variants_table

TABLE, BASE = "ablation", "default"

OPTIONS = {
    "prompt_assignment": ["label"],
    "prompt_election": ["majority", "seen"],
    "negatives": ["all"],
    "lr_decay": [0.0, 0.5],
    "prompt_length": [1, 5, 10],
    "prompt_init": ["normal", "zeros"],
    "readout": ["prompt", "patch"],
    "temperature": [0.05, 0.1, 0.5, 1.0],
    "lr": [0.01, 0.03, 0.3],
    "metric": ["euclidean"],
    "exclude_self": [True],
    "prompt_position": ["cls"],
}

VARIANTS: Variants = {
    BASE: ("f2ocl", {}),
    "no prompt": ("vit-ncm", {}),
    "random prompt": ("random-prompt", {}),
} | {f"{name}={value}": ("f2ocl", {name: value}) for name, values in OPTIONS.items() for value in values}


def main() -> None:
    parser = variants_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS), metavar="VARIANT")
    args = parser.parse_args()
    run_variants(TABLE, {name: VARIANTS[name] for name in args.only}, args)
    text = variants_table(args.results / TABLE, list(VARIANTS), "variant", [BASE, "no prompt"])
    print(text)
    if args.results == RESULTS:
        insert(RESULTS.parent / "README.md", TABLE, text)


if __name__ == "__main__":
    main()
