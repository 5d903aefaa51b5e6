"""Island collector: what a Python program uses, call by call, and where its time went.

:mod:`perun.island` records the program and accounts for its time; this collector makes a profile of that.
"""

from __future__ import annotations

from perun.collect.island.collector import COLLECTOR_DEFAULT_UNITS, COLLECTOR_TYPE, IslandCollector

PLUGIN = IslandCollector

__all__ = ["COLLECTOR_DEFAULT_UNITS", "COLLECTOR_TYPE", "PLUGIN", "IslandCollector"]
