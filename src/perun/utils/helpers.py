"""Decorators for the click commands of plugins (manual 1.6.3)."""

from __future__ import annotations

from perun.profile.factory import pass_profile

__all__ = ["pass_profile"]
