"""Regex collector: the values that a program itself prints, found by regular expressions.

The groups of an expression say what it finds: `value`, and the `name`, `unit` and `size` that belong to it.
"""

from __future__ import annotations

from perun.collect.regex.collector import COLLECTOR_DEFAULT_UNITS, COLLECTOR_TYPE, RegexCollector

PLUGIN = RegexCollector

__all__ = ["COLLECTOR_DEFAULT_UNITS", "COLLECTOR_TYPE", "PLUGIN", "RegexCollector"]
