"""Sphinx: `make docs`."""

import sys
from pathlib import Path

import avalanche_f2ocl

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "avalanche_f2ocl"
author = "The avalanche_f2ocl authors"
version = release = avalanche_f2ocl.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
extensions += ["mathml", "references"]
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"avalanche_f2ocl {version}"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 100
napoleon_use_ivar = True
# A reference that leads nowhere is an error. Types of other libraries are not looked up: that needs a network.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(torch|numpy|avalanche|timm|PIL|matplotlib|sklearn)\..*"),
    (r"py:.*", r"(pathlib|collections|typing|os|datetime|argparse)\..*"),
    (r"py:.*", r"(moved|optional|default.*)"),
]
suppress_warnings = ["myst.xref_missing"]
