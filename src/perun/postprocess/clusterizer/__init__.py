"""Puts resources with similar amounts into numbered clusters, on which models can depend.

Resources of the same type, subtype and uid are clustered together, by their amounts (manual 5.1.3).
"""

from __future__ import annotations

from perun.postprocess.clusterizer.postprocessor import Clusterizer, ClusterizerParams

PLUGIN = Clusterizer
SUPPORTED_PROFILES = ["mixed|memory|time"]

__all__ = ["PLUGIN", "SUPPORTED_PROFILES", "Clusterizer", "ClusterizerParams"]
