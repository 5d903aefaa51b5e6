"""Kernel regression: smooth curves through the resources of each uid, without a formula (manual 5.1.6).

On the command line the mode is a sub-command with options of its own, so that
:mod:`perun.postprocess.kernel_regression.command` has a command for it.
"""

from __future__ import annotations

from perun.postprocess.kernel_regression.params import KernelParams
from perun.postprocess.kernel_regression.postprocessor import KernelRegression

PLUGIN = KernelRegression
SUPPORTED_PROFILES = ["mixed|memory|time"]

__all__ = ["PLUGIN", "SUPPORTED_PROFILES", "KernelParams", "KernelRegression"]
