"""Flame graph: where resources come from, by their call stacks, as one interactive page (manual 6.1.2)."""

from __future__ import annotations

from perun.view.flamegraph.view import FlameGraphView, FlameParams

PLUGIN = FlameGraphView

__all__ = ["PLUGIN", "FlameGraphView", "FlameParams"]
