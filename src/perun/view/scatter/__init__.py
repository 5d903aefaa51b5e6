"""Scatter: resources as points, with the models made of them (manual 6.1.4)."""

from __future__ import annotations

from perun.view.scatter.params import ScatterParams
from perun.view.scatter.view import ScatterView

PLUGIN = ScatterView

__all__ = ["PLUGIN", "ScatterParams", "ScatterView"]
