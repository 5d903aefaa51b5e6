"""Time collector: how long a command runs (manual 4.1.3).

Every run yields three resources: `real` (elapsed), `user` and `sys` time, the latter two with those of all
descendants that the command waited for.
"""

from __future__ import annotations

from perun.collect.time.collector import COLLECTOR_DEFAULT_UNITS, COLLECTOR_TYPE, TimeCollector

PLUGIN = TimeCollector

__all__ = ["COLLECTOR_DEFAULT_UNITS", "COLLECTOR_TYPE", "PLUGIN", "TimeCollector"]
