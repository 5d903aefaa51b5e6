"""Complexity collector: every call of the functions of a program that is compiled for it.

Each resource is one call: how long it took, and the size of the structure that it worked on.
"""

from __future__ import annotations

from perun.collect._calls.profile import COLLECTOR_DEFAULT_UNITS, COLLECTOR_TYPE
from perun.collect.complexity.collector import ComplexityCollector

PLUGIN = ComplexityCollector

__all__ = ["COLLECTOR_DEFAULT_UNITS", "COLLECTOR_TYPE", "PLUGIN", "ComplexityCollector"]
