"""Raw view: the profile itself as JSON (manual 2.1), or its resources as CSV or as a Parquet file."""

from __future__ import annotations

from perun.view.raw.view import RawParams, RawView

PLUGIN = RawView

__all__ = ["PLUGIN", "RawParams", "RawView"]
