"""CPU time of moving averages with automatic width, 100,000 points.

The plugin gets a profile that is in memory already; what it imports counts, as each round is a new process.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from math import sin

from report import Measured, Place, Row

POINTS = 100_000
CPU_LIMIT = 1.0
SIGNALS = ("noise", "wave", "steps")


def moving_average(place: Place) -> Iterator[Row]:
    """CPU time of the simple moving average, which has a limit, and of the median."""
    for method, limit in (("sma", 1.0), ("smm", None)):
        for signal in SIGNALS:
            argv = [sys.executable, __file__, method, signal]
            times = [
                float(subprocess.run(argv, check=True, capture_output=True).stdout)
                for _ in range(max(3, place.rounds // 3))
            ]
            name = f"moving-average {method}, automatic width, {POINTS:,} points ({signal}), CPU"
            yield Row(name, Measured(times), CPU_LIMIT, "limit", limit)


def once(method: str, signal: str) -> float:
    """CPU time of one postprocessing in seconds."""
    from perun.plugin.api import PostprocessContext
    from perun.postprocess.moving_average import MovingAverage, MovingAverageParams
    from perun.profile.factory import Profile

    columns = {"amount": amounts(signal), "structure-unit-size": list(range(POINTS))}
    constants = {"uid": "f", "type": "mixed"}
    profile = Profile({"resources": {"f#0": columns}, "resource_type_map": {"f#0": constants}})
    before = os.times()
    MovingAverage().process(profile, MovingAverageParams(method), PostprocessContext())
    after = os.times()
    assert len(profile["models"][0]["bucket_stats"]) == POINTS
    return after.user + after.system - before.user - before.system


def amounts(signal: str) -> list[float]:
    """`noise` narrows the window to one point; of the others wide windows are nearly good enough."""
    seeded = random.Random(5)
    if signal == "noise":
        return [seeded.gauss(0, 1) for _ in range(POINTS)]
    if signal == "wave":
        return [sin(x / 2000) + seeded.gauss(0, 0.3) for x in range(POINTS)]
    return [x // 5000 + seeded.gauss(0, 2) for x in range(POINTS)]


if __name__ == "__main__":
    print(once(*sys.argv[1:]))
