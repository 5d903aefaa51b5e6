"""Timeline: what each thread of a program did when, and when the program was stopped."""

from __future__ import annotations

from perun.view.timeline.view import TimelineParams, TimelineView

PLUGIN = TimelineView

__all__ = ["PLUGIN", "TimelineParams", "TimelineView"]
