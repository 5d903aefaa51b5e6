"""Bars: aggregated resources as a bar chart (manual 6.1.1)."""

from __future__ import annotations

from perun.view.bars.view import BarsParams, BarsView

PLUGIN = BarsView

__all__ = ["PLUGIN", "BarsParams", "BarsView"]
