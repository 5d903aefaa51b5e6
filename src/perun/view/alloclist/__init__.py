"""Alloclist view: the allocations of a memory profile one by one, as text."""

from __future__ import annotations

from perun.view.alloclist.view import AllocListParams, AllocListView

PLUGIN = AllocListView

__all__ = ["PLUGIN", "AllocListParams", "AllocListView"]
