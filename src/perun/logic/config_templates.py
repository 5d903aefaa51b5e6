"""The predefined templates of local configurations, under the name of the manual (11.3)."""

from __future__ import annotations

from perun.core.config.templates import render

__all__ = ["render"]
