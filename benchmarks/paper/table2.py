"""Table 2: how often the key is right, and what a right or a random key would give.

    python -m benchmarks.paper.table2 -- --dataset DIR/cifar100.zip --backbone vit_tiny_patch16_224 \\
        --weights FILE --image-size 112 --train-per-class 50 --test-per-class 20

What follows ``--`` goes to the runner. The table goes into benchmarks/README.md.
"""

from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import insert
from benchmarks.runs.variants import Variants, run_variants, variants_parser, variants_table

TABLE = "table2"

VARIANTS: Variants = {
    "mean keys": ("f2ocl", {}),
    "gradient keys": ("f2ocl", {"key_update": "gradient"}),
    "mean keys, own label's prompt": ("f2ocl", {"prompt_assignment": "label"}),
    "gradient keys, own label's prompt": ("f2ocl", {"prompt_assignment": "label", "key_update": "gradient"}),
}


def main() -> None:
    args = variants_parser(__doc__).parse_args()
    run_variants(TABLE, VARIANTS, args)
    text = variants_table(args.results / TABLE, list(VARIANTS), "keys")
    print(text)
    if args.results == RESULTS:
        insert(RESULTS.parent / "README.md", TABLE, text)


if __name__ == "__main__":
    main()
