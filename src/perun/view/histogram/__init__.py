"""Histogram: how often measured values lie in which interval."""

from __future__ import annotations

from perun.view.histogram.view import HistogramParams, HistogramView

PLUGIN = HistogramView

__all__ = ["PLUGIN", "HistogramParams", "HistogramView"]
