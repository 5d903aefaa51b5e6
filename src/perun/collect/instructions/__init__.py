"""Instructions collector: how many instructions each function of a program executes."""

from __future__ import annotations

from perun.collect.instructions.collector import (
    COLLECTOR_DEFAULT_UNITS,
    COLLECTOR_TYPE,
    InstructionsCollector,
)

PLUGIN = InstructionsCollector

__all__ = ["COLLECTOR_DEFAULT_UNITS", "COLLECTOR_TYPE", "PLUGIN", "InstructionsCollector"]
