"""How far what recording a call costs differs from one calibration of a machine to the next.

    python benchmarks/calibration.py [--rounds N] [--pause SECONDS]

The cost is measured once after each start of the machine, and subtracted from what is recorded at any time
later. So each pair of calibrations stands for such a start and a later recording. A cost is said to be wrong
by the spread of its own rounds, and by the share `UNCERTAIN` of it at least. For each way of recording the
table has the costs, the difference that 95 % of the pairs do not exceed, as a share of the first of the two,
and how many pairs the spread of the rounds and the share cover. It fails where they cover less than 95 %.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from itertools import permutations
from pathlib import Path
from typing import Final

import numpy as np

from perun.collect._calls import calibration
from perun.collect._calls.overhead import CallCost
from perun.collect.trace.engines import EngineContext, TraceEngine
from perun.collect.trace.engines.calibration import ProbeMode, correction
from perun.collect.trace.engines.ebpf import EbpfEngine
from perun.collect.trace.engines.uftrace import UftraceEngine
from perun.collect.trace.plan import TracePlan
from perun.plugin.api import Run

ROUNDS: Final = 30
PAUSE: Final = 10.0
COVERED: Final = 0.95
ENGINES: Final = {
    EbpfEngine: (ProbeMode(False, -1), ProbeMode(True, -1), ProbeMode(True, 1)),
    UftraceEngine: (ProbeMode(True, -1),),
}
"""The ways of recording a function that differ most, by the engine."""
NO_PLAN: Final = TracePlan((), (), False, str(calibration.PROGRAM))


def calibrated(engine: TraceEngine, ways: tuple[ProbeMode, ...], folder: Path) -> dict[str, CallCost]:
    """The costs as they are now; none are kept."""
    run = Run(str(calibration.PROGRAM), "", "", cwd=folder, environ=dict(os.environ))
    found = correction(engine, NO_PLAN, EngineContext(run, folder, "suppress", 0.0), ways, None)
    if found.why_not:
        raise SystemExit(f"{engine.name}: {found.why_not}")
    return {f"{engine.name}, {way}": cost for way, cost in found.costs.items()}


def measured(rounds: int, pause: float, folder: Path) -> dict[str, list[CallCost]]:
    """Costs by way, of calibrations one after the other; their spread is that of the rounds alone."""
    engines = [(kind(os.environ), ways) for kind, ways in ENGINES.items()]
    usable = [(engine, ways) for engine, ways in engines if not engine.unavailable()[0]]
    found: dict[str, list[CallCost]] = defaultdict(list)
    share, calibration.UNCERTAIN = calibration.UNCERTAIN, 0.0
    try:
        for number in range(rounds):
            time.sleep(pause if number else 0.0)
            for engine, ways in usable:
                for way, cost in calibrated(engine, ways, folder).items():
                    found[way].append(cost)
    finally:
        calibration.UNCERTAIN = share
    return found


def line(way: str, costs: list[CallCost]) -> tuple[str, float]:
    """The line of a way, and the share of the pairs of which the difference was within what is said."""
    whole = [(one.inside + one.outside, one.spread) for one in costs]
    apart, alone, both = [], 0, 0
    for (kept, spread), (now, _) in permutations(whole, 2):
        apart.append(abs(now - kept) / kept)
        alone += abs(now - kept) <= spread
        both += abs(now - kept) <= max(spread, calibration.UNCERTAIN * kept)
    times = np.array([one for one, _ in whole]) / 1000
    spreads = np.median([spread / one for one, spread in whole])
    text = (
        f"| {way} | {np.median(times):.2f} us ({times.min():.2f} to {times.max():.2f}) | {spreads:.0%} "
        f"| {np.quantile(apart, COVERED):.0%} | {alone / len(apart):.0%} | {both / len(apart):.0%} |"
    )
    return text, both / len(apart)


def main() -> int:
    """Print the table; 1 where a way is covered too seldom."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--pause", type=float, default=PAUSE)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="perun-bench-") as folder:
        found = measured(options.rounds, options.pause, Path(folder))
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{options.rounds} calibrations, {options.pause:g} s apart; load {load}")
    print(f"| recorded | cost | spread of rounds | {COVERED:.0%} differ by at most | the spread covers "
          f"| with {calibration.UNCERTAIN:.0%} |\n|---|---|---|---|---|---|")  # fmt: skip
    lines = [line(way, costs) for way, costs in found.items()]
    print("\n".join(text for text, _ in lines))
    return 0 if all(share >= COVERED for _, share in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
