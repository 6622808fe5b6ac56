"""References in docstrings by the name that the code uses: short, public, or inherited."""

import importlib
import re
import sys
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-docstring", keep_names_together, priority=900)
    return {"parallel_read_safe": True}


def find(name: str, module: str | None) -> Any:
    """The object of a full name, or of one that ``module`` knows; None if there is none."""
    if name.startswith("avalanche_f2ocl."):
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            try:
                place, rest = importlib.import_module(".".join(parts[:length])), parts[length:]
                break
            except ImportError:
                continue
    else:
        place, rest = sys.modules.get(module or ""), name.split(".")
    for part in rest:
        place = getattr(place, part, None)
    return place


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element) -> nodes.Element | None:
    """Leads to where the same object is documented under another name."""
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"]
    module, inside = node.get("py:module"), node.get("py:class")
    wanted = find(name, module)
    if wanted is None and (owner := find(inside or "", module)) is not None:
        wanted = find(name, owner.__module__) or getattr(owner, name, None)
    if wanted is None:
        return None
    last = name.rsplit(".", 1)[-1]
    for known, entry in env.get_domain("py").objects.items():  # type: ignore[attr-defined]
        if known.rsplit(".", 1)[-1] == last and find(known, None) is wanted:
            return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, known)
    return None


def keep_names_together(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Attributes that share a description: otherwise all but the last would be taken for its type."""
    for i, line in enumerate(lines):
        if match := re.match(r":ivar (\w+(?:, \w+)+):", line):
            lines[i] = f":ivar {match[1].replace(', ', ',')}:" + line[match.end() :]
