"""Kernel regression: smooth curves through the resources of each uid, without a formula (manual 5.1.6)."""

from __future__ import annotations

from perun.postprocess.kernel_regression.params import KernelParams
from perun.postprocess.kernel_regression.postprocessor import KernelRegression

PLUGIN = KernelRegression
SUPPORTED_PROFILES = ["mixed|memory|time"]

__all__ = ["PLUGIN", "SUPPORTED_PROFILES", "KernelParams", "KernelRegression"]
