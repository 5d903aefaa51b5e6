"""Table-of view: resources or models of a profile as a two-dimensional table (manual 6.1.5).

The options of the command line are odd, some of them standing before the sub-command `resources` or
`models`, so that :mod:`perun.view.tableof.command` has a command of its own.
"""

from __future__ import annotations

from perun.view.tableof.view import TableOfView, TableParams

PLUGIN = TableOfView

__all__ = ["PLUGIN", "TableOfView", "TableParams"]
