"""The configuration of Perun, under the name of older releases (manual 11)."""

from __future__ import annotations

from perun.core.config.layers import Config, load

__all__ = ["Config", "load"]
