"""Sample collector: where a program spends its CPU time, by function, call stack and thread."""

from __future__ import annotations

from perun.collect.sample.collector import COLLECTOR_DEFAULT_UNITS, COLLECTOR_TYPE, SampleCollector

PLUGIN = SampleCollector

__all__ = ["COLLECTOR_DEFAULT_UNITS", "COLLECTOR_TYPE", "PLUGIN", "SampleCollector"]
