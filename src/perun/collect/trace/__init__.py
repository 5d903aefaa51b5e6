"""Trace collector: every call of chosen functions of a C or C++ program as it is (manual 4.1.1)."""

from __future__ import annotations

from perun.collect.trace.collector import COLLECTOR_DEFAULT_UNITS, COLLECTOR_TYPE, TraceCollector

PLUGIN = TraceCollector

__all__ = ["COLLECTOR_DEFAULT_UNITS", "COLLECTOR_TYPE", "PLUGIN", "TraceCollector"]
