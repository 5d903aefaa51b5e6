"""Moving average: the resources of each uid, smoothed along another field (manual 5.1.5).

On the command line `sma`, `smm` and `ema` are sub-commands, of which each has options of its own; in a job
matrix the parameter `moving_method` says which.
"""

from __future__ import annotations

from perun.postprocess.moving_average.postprocessor import MovingAverage, MovingAverageParams

PLUGIN = MovingAverage
SUPPORTED_PROFILES = ["mixed|memory|time"]

__all__ = ["PLUGIN", "SUPPORTED_PROFILES", "MovingAverage", "MovingAverageParams"]
