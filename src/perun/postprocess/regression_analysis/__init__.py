"""Regression analysis: models of the resources of each uid, depending on another field (manual 5.1.2)."""

from __future__ import annotations

from perun.postprocess.regression_analysis.postprocessor import RegressionAnalysis, RegressionParams

PLUGIN = RegressionAnalysis
SUPPORTED_PROFILES = ["mixed|memory|time"]

__all__ = ["PLUGIN", "SUPPORTED_PROFILES", "RegressionAnalysis", "RegressionParams"]
