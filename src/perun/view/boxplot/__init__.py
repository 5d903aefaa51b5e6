"""Box plot: how repeated measurements are distributed, a box for each key."""

from __future__ import annotations

from perun.view.boxplot.view import BoxplotParams, BoxplotView

PLUGIN = BoxplotView

__all__ = ["PLUGIN", "BoxplotParams", "BoxplotView"]
