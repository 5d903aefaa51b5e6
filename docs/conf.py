"""Settings of the manual; `make docs` builds it."""

from __future__ import annotations

import sys
from pathlib import Path

import perun

sys.path.insert(0, str(Path(__file__).parent))
from reference import write_reference
from screenshots import collect_screenshots

project = "Perun"
author = "the authors of Perun"
project_copyright = "the authors of Perun"
version = release = perun.__version__

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
exclude_patterns = ["build"]
nitpicky = True

html_theme = "furo"
html_title = f"Perun {release}"
html_copy_source = False
html_show_sphinx = False

# What the program knows of itself is not written down a second time.
write_reference(Path(__file__).parent / "generated")
collect_screenshots(Path(__file__).parent)
