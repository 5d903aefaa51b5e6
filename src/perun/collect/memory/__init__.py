"""Memory collector: every allocation of a program with its call stack (manual 4.1.2).

A library is loaded into the program before all others and records what is allocated and released; after the
run the call stacks are turned into functions and lines, and the events into resources.
"""

from __future__ import annotations

from perun.collect.memory.collector import COLLECTOR_DEFAULT_UNITS, COLLECTOR_TYPE, MemoryCollector

PLUGIN = MemoryCollector

__all__ = ["COLLECTOR_DEFAULT_UNITS", "COLLECTOR_TYPE", "PLUGIN", "MemoryCollector"]
