"""Divides each amount by the largest one of its snapshot and type.

The amounts of one snapshot and type are divided by the largest of them (manual 5.1.1).
"""

from __future__ import annotations

from perun.postprocess.normalizer.postprocessor import Normalizer

PLUGIN = Normalizer
SUPPORTED_PROFILES = ["mixed|memory|time"]

__all__ = ["PLUGIN", "SUPPORTED_PROFILES", "Normalizer"]
