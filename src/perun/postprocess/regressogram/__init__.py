"""Regressogram: the resources of each uid as a step function over buckets of equal width (manual 5.1.4)."""

from __future__ import annotations

from perun.postprocess.regressogram.postprocessor import Regressogram, RegressogramParams

PLUGIN = Regressogram
SUPPORTED_PROFILES = ["mixed|memory|time"]

__all__ = ["PLUGIN", "SUPPORTED_PROFILES", "Regressogram", "RegressogramParams"]
