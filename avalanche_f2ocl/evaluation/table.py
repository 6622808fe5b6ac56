"""Results as a table to read; pictures are in :mod:`avalanche_f2ocl.evaluation.plots`."""

from collections.abc import Mapping

from avalanche_f2ocl.evaluation.by_groups import GroupsResult

COLUMNS = ("A_n", "A_n_samples", "F_n", "A_k", "UB", "random_key")


def result_table(results: Mapping[str, GroupsResult]) -> str:
    """A Markdown table of results by method, in per cent and seconds; "-" where a method lacks a figure.

    Args:
        results: results of :func:`avalanche_f2ocl.evaluation.by_groups.run_online`, by method.

    Example:
        >>> import numpy as np
        >>> from avalanche_f2ocl.evaluation.by_groups import GroupsResult
        >>> result = GroupsResult(np.array([[0.9, np.nan], [0.8, 0.7]]), 0.75, 0.75, 0.1, None, None, None, 1.0)
        >>> print(result_table({"mine": result}).splitlines()[-1])
        | mine | 75.00 | 75.00 | 10.00 | - | - | - | 1 |
    """
    lines = ["| method | " + " | ".join(COLUMNS) + " | seconds |", "|---|" + "---:|" * (len(COLUMNS) + 1)]
    for method, result in results.items():
        figures = [getattr(result, name) for name in COLUMNS]
        cells = ["-" if value is None else f"{100 * value:.2f}" for value in figures]
        lines.append(f"| {method} | " + " | ".join(cells) + f" | {result.seconds:.0f} |")
    return "\n".join(lines)
