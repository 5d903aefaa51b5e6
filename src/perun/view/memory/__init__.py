"""Memory view: peak, leaks and temporary allocations of a memory profile, as text."""

from __future__ import annotations

from perun.view.memory.view import MemoryView, MemoryViewParams

PLUGIN = MemoryView

__all__ = ["PLUGIN", "MemoryView", "MemoryViewParams"]
