"""``f2ocl counts``: how many images of each class a file has learned."""

import argparse
from typing import Any

from avalanche_f2ocl.cli import info
from avalanche_f2ocl.cli.messages import one_line


def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Id, name and number of images of each class, in order of appearance; no model is loaded."""
    return info.run(args)["classes"]


def text(result: list[dict[str, Any]]) -> str:
    """The result as text, also for ``cut``: a line for each class, with parts separated by tabs."""
    return "\n".join(
        "\t".join([one_line(c["name"] or str(c["id"])), str(c["images"] if c["images"] is not None else "?")])
        for c in result
    )
