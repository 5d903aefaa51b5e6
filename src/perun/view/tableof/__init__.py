"""Table-of view: resources or models of a profile as a two-dimensional table (manual 6.1.5)."""

from __future__ import annotations

from perun.view.tableof.view import TableOfView, TableParams

PLUGIN = TableOfView

__all__ = ["PLUGIN", "TableOfView", "TableParams"]
