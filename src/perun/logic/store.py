"""The storage of Perun, under the name of older releases."""

from __future__ import annotations

from perun.store import Store

__all__ = ["Store"]
