"""``f2ocl info``: a description of a saved learner."""

import argparse
from typing import Any

from avalanche_f2ocl.cli.messages import one_line
from avalanche_f2ocl.models.description import describe
from avalanche_f2ocl.models.model_file import read_model_file


def run(args: argparse.Namespace) -> dict[str, Any]:
    """The description in a file; no model is loaded."""
    described = describe(*read_model_file(args.file))
    return {"file": str(args.file), "bytes": args.file.stat().st_size, **described}


def text(result: dict[str, Any]) -> str:
    """The result as readable text."""
    backbone, classes, options = result["backbone"], result["classes"], result["options"]
    shown = [c["name"] or str(c["id"]) for c in classes[:10]]
    more = f" and {len(classes) - 10} more" if len(classes) > 10 else ""
    images = [c["images"] for c in classes if c["images"] is not None]
    resolved = result["resolved"]
    width = f", through {resolved['projection']} random features" if resolved.get("projection") else ""
    lines = [
        f"learned by  {result['strategy']}, head {options.get('head', '-')} on {options.get('head_features', '-')}",
        f"backbone    {backbone['name']} at {backbone['image_size']} px, "
        + ("in the file" if backbone["in_file"] else "not in the file")
        + f", SHA-256 {backbone['sha256'][:12]}",
        f"computed    in {resolved.get('dtype', 'a precision that is not noted')}{width}",
        f"classes     {len(classes)}{': ' if classes else ''}{', '.join(shown)}{more}",
    ]
    if images:
        lines.append(f"images      {sum(images)}, {min(images)} to {max(images)} a class; none is in the file")
    if result["needs"]:
        lines.append("needs       " + ", ".join(f"{option} {name}" for option, name in result["needs"].items()))
    if result["classes_left_out"]:
        lines.append(f"left out    {result['classes_left_out']} rare classes")
    return "\n".join(map(one_line, [*lines, f"size        {result['bytes'] / 1e6:.1f} MB"]))
