"""Moving average: the resources of each uid, smoothed along another field (manual 5.1.5).

The options of the command line stand partly before the sub-command `sma`, `smm` or `ema`, so that
:mod:`perun.postprocess.moving_average.command` has a command of its own. In a job matrix the sub-command is
the parameter `moving_method`.
"""

from __future__ import annotations

from perun.postprocess.moving_average.postprocessor import MovingAverage, MovingAverageParams

PLUGIN = MovingAverage
SUPPORTED_PROFILES = ["mixed|memory|time"]

__all__ = ["PLUGIN", "SUPPORTED_PROFILES", "MovingAverage", "MovingAverageParams"]
