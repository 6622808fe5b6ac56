"""Sphinx: `make docs`."""

import avalanche_f2ocl

project = "avalanche_f2ocl"
author = "The avalanche_f2ocl authors"
version = release = avalanche_f2ocl.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
html_theme = "furo"
html_title = f"avalanche_f2ocl {version}"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 100
napoleon_use_ivar = True
suppress_warnings = ["myst.xref_missing"]
