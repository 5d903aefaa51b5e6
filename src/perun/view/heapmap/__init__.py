"""Heap map: the heap by address, snapshot by snapshot, and a heat map of all allocations."""

from __future__ import annotations

from perun.view.heapmap.view import HeapMapView, HeapParams

PLUGIN = HeapMapView

__all__ = ["PLUGIN", "HeapMapView", "HeapParams"]
