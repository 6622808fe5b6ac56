"""One option of a method over several values, on one data set.

    python -m benchmarks.runs.sweep --method er500 --option lr --values 0.001 0.01 0.1 --seeds 3 -- \\
        --dataset digits --backbone micro_vit --groups 5

What follows ``--`` goes to the runner. Results lie in ``results/sweep-<method>-<option>/<value>/``.
"""

import json

from benchmarks.runs.methods import METHODS
from benchmarks.runs.variants import run_variants, variants_parser, variants_table


def folder_name(value) -> str:
    """JSON, but strings without quotation marks, which Windows does not allow in file names."""
    return value if isinstance(value, str) else json.dumps(value)


def in_order(name: str) -> tuple:
    """A sorting key: numbers by size, then other names alphabetically."""
    try:
        return (0, float(name))
    except ValueError:
        return (1, name)


def main() -> None:
    parser = variants_parser(__doc__, seeds=[3])
    parser.add_argument("--method", required=True, choices=METHODS)
    parser.add_argument("--option", required=True, help="of the strategy's constructor")
    parser.add_argument("--values", nargs="+", required=True, type=json.loads, help="as JSON")
    args = parser.parse_args()
    table = f"sweep-{args.method}-{args.option}"
    run_variants(table, {folder_name(value): (args.method, {args.option: value}) for value in args.values}, args)
    folder = args.results / table
    values = sorted((path.name for path in folder.iterdir() if path.is_dir()), key=in_order)
    print(variants_table(folder, values, args.option))


if __name__ == "__main__":
    main()
