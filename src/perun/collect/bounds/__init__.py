"""Bounds collector: how often each loop of C sources can run, from the source alone (manual 4.1.4)."""

from __future__ import annotations

from perun.collect.bounds.collector import COLLECTOR_DEFAULT_UNITS, COLLECTOR_TYPE, BoundsCollector

PLUGIN = BoundsCollector

__all__ = ["COLLECTOR_DEFAULT_UNITS", "COLLECTOR_TYPE", "PLUGIN", "BoundsCollector"]
