"""How often samples name a function: of one program compared with itself, and with one of whose functions one
with 10 % of the time takes 10 % more.

    python benchmarks/sampled_functions.py [RUNS [COMPARISONS]]

Both programs are run in turns under the collector `sample`. Comparisons are made of runs drawn without
replacement, in the order of measuring, as many as the formula says that the change needs.
"""

from __future__ import annotations

import math
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from perun.collect.sample.collector import SampleCollector, SampleParams
from perun.measurement.difference import Rules
from perun.measurement.many import LEAST_SHARE, Plan
from perun.measurement.series import Metric, measurements
from perun.measurement.verdict import is_change
from perun.plugin.api import CollectContext, Run
from perun.running.compare.decide import ARMS, BASE, HEAD, InterimPlan
from perun.running.compare.instruments import Reading
from perun.running.compare.trial import LATE, Trial, look

FREQUENCY: Final = 1999
RUNS, COMPARISONS = 250, 100
SLOWER: Final = "render"
COSTS: Final = {
    "big": 250, "parse": 150, SLOWER: 100, "hash": 100, "sum": 90, "copy": 70, "scan": 60, "find": 50,
    "join": 40, "split": 30, "trim": 30, "a": 10, "b": 8, "c": 7, "d": 5,
}  # fmt: skip
FUNCTION: Final = """__attribute__((noinline)) unsigned f_{name}(unsigned s) {{
    for (long i = 0; i < {loops}L; i++) s = s * 1664525u + (s >> 3) + 1013904223u;
    return s;
}}
"""
Values = dict[Metric, float]


def built(folder: Path, name: str, factor: float) -> Path:
    """The program whose function :data:`SLOWER` takes so many times as long."""
    loops = {one: round(1000 * cost * (factor if one == SLOWER else 1)) for one, cost in COSTS.items()}
    calls = "".join(f"s = f_{one}(s);" for one in COSTS)
    main = (
        f"int main(void) {{ unsigned s = 1; for (int i = 0; i < 100; i++) {{ {calls} }} return s == 7; }}\n"
    )
    source = folder / f"{name}.c"
    source.write_text("".join(FUNCTION.format(name=one, loops=own) for one, own in loops.items()) + main)
    subprocess.run(["cc", "-O1", "-g", "-o", folder / name, source], check=True)
    return folder / name


def recorded(program: Path, folder: Path) -> Values:
    """The CPU time of each function in one run, by the name that both programs share."""
    profile = SampleCollector().collect(
        Run(str(program)), SampleParams(frequency=FREQUENCY), CollectContext(folder)
    )
    found = {one.metric: float(one.values.sum()) for one in measurements(profile).values()}
    return {
        metric._replace(uid=metric.uid.rpartition(":")[2]): own
        for metric, own in found.items() if metric.is_part or metric.uid.endswith(":total")
    }  # fmt: skip


def named(base: Sequence[Values], head: Sequence[Values]) -> list[str]:
    """The functions that a comparison of these runs names."""
    trial = Trial("sample:*")
    for one, other in zip(base, head, strict=True):
        arms = {BASE: one, HEAD: other}
        trial.pairs.append({arm: Reading(arms.get(arm, one)) for arm in ARMS})
    look(trial, InterimPlan(len(base), LATE), Rules(), ends=True)
    return [one.metric.uid for one in trial.parts if is_change(one.verdict)]


def needed(runs: Sequence[Values]) -> int:
    """How many pairs the formula says."""
    total = sum(max(one.values()) for one in runs) / len(runs)
    shares: Counter[str] = Counter()
    for one in runs:
        shares.update({metric.uid: own / total / len(runs) for metric, own in one.items() if metric.is_part})
    parts = sum(own >= LEAST_SHARE for own in shares.values())
    pairs = 100
    for _ in range(3):
        level = InterimPlan(pairs, LATE).level(1 - Rules().confidence, pairs, ends=True)
        plan = Plan(level, parts, Rules().threshold, pairs)
        samples = plan.samples_needed(shares[f"f_{SLOWER}"])
        pairs = math.ceil(samples / FREQUENCY / total)
    print(
        f"{samples:,} samples of each side, {samples / 499:.0f} s at 499 Hz: {pairs} pairs, {parts} functions"
    )
    return pairs


def main(runs: int, comparisons: int) -> None:
    """Record the runs, and print the counts."""
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = {"same": built(folder, "same", 1.0), "slower": built(folder, "slower", 1.1)}
        order = ["same", "same", "slower"]
        found: dict[str, list[Values]] = {"same": [], "slower": []}
        for _ in range(runs):
            rng.shuffle(order)
            for one in order:
                found[one].append(recorded(programs[one], folder))
    pairs = min(needed(found["same"]), runs)
    alike = [named(*_drawn(rng, found["same"], found["same"], pairs)) for _ in range(comparisons)]
    slower = [named(*_drawn(rng, found["same"], found["slower"], pairs)) for _ in range(comparisons)]
    print(f"of {comparisons} comparisons of a program with itself {sum(map(bool, alike))} name a function")
    right = sum(f"f_{SLOWER}" in one for one in slower)
    others = sum(bool(set(one) - {f"f_{SLOWER}"}) for one in slower)
    print(f"of {comparisons} with one function 10 % slower {right} name it, {others} another one")


def _drawn(
    rng: random.Random, base: Sequence[Values], head: Sequence[Values], pairs: int
) -> tuple[list[Values], list[Values]]:
    """Runs of both; of one program each run is on one side only."""
    if base is head:
        chosen = rng.sample(range(len(base) // 2), pairs)
        sides = [rng.sample((2 * one, 2 * one + 1), 2) for one in sorted(chosen)]
        return [base[one] for one, _ in sides], [head[other] for _, other in sides]
    places = sorted(rng.sample(range(len(head)), pairs))
    return [base[2 * one + rng.randrange(2)] for one in places], [head[one] for one in places]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:])) if len(sys.argv) > 2 else main(
        int((sys.argv[1:] or [RUNS])[0]), COMPARISONS
    )
