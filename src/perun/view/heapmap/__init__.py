"""Heap map: what lies where in the heap, snapshot by snapshot, and where most was allocated over all."""

from __future__ import annotations

from perun.view.heapmap.view import HeapMapView, HeapParams

PLUGIN = HeapMapView

__all__ = ["PLUGIN", "HeapMapView", "HeapParams"]
