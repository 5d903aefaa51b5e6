"""Memory view: the largest parts of a heap, what leaked and what lived shortly, as text."""

from __future__ import annotations

from perun.view.memory.view import MemoryView, MemoryViewParams

PLUGIN = MemoryView

__all__ = ["PLUGIN", "MemoryView", "MemoryViewParams"]
