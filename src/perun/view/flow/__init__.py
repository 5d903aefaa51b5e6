"""Flow: aggregated resources as lines or areas along an independent key (manual 6.1.3)."""

from __future__ import annotations

from perun.view.flow.view import FlowParams, FlowView

PLUGIN = FlowView

__all__ = ["PLUGIN", "FlowParams", "FlowView"]
