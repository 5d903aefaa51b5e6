"""What each method of detection says of pairs whose true change is known: how often it is right and wrong.

    python benchmarks/verdicts_methods.py [--json FILE] [--before FILE] [--pairs N] [METHOD ...]

The pairs are made of runs of real commands, as :mod:`verdicts_runs` recorded them, quietly and beside busy
loops: both profiles of a pair are of different runs, and the times of one function of the target, or of the
command, are multiplied. So the noise of the machine is in them, and the right answer is known.

The table is that of `docs/methods.md`; `--before` puts the figures of another release beside it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from perun.plugin.api import NO_POSTPROCESS_CONTEXT, CheckContext
from perun.plugin.registry import Registry
from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams
from perun.profile.changes import PerformanceChange
from perun.profile.factory import Profile
from perun.profile.pooling import RUN

RUNS = Path(__file__).parent.parent / "tests/data/verdicts/runs.json.gz"
EFFECTS = (0, 2, 5, 10, 20, 50, 100)
"""Percent that the target is slower by."""
OF_CALLS = ("aat", "bmoe", "fast", "lreg", "preg", "int", "loc", "eto")
OF_TIMES = ("aat",)
ROUNDS = 5
REPEAT = 10
"""Runs of the command in one profile of times."""
_ANSWERS = {
    PerformanceChange.MaybeDegradation: "perhaps right",
    PerformanceChange.MaybeOptimization: "perhaps wrong",
    PerformanceChange.Degradation: "right",
    PerformanceChange.SevereDegradation: "right",
    PerformanceChange.TotalDegradation: "right",
    PerformanceChange.Optimization: "wrong",
    PerformanceChange.SevereOptimization: "wrong",
    PerformanceChange.TotalOptimization: "wrong",
}
"""What a verdict on something slower is; all others say nothing. Where nothing changed, right and wrong ones
are false alarms."""


class Case(NamedTuple):
    """A pair of profiles; where it is looked at, and what its answer counts for."""

    baseline: Profile
    target: Profile
    location: str
    effect: int


def measure(pairs: int, methods: list[str]) -> dict[str, dict[str, dict[int, Counter[str]]]]:
    """By condition and data, method and effect, how often each kind of answer was given."""
    runs = json.loads(gzip.decompress(RUNS.read_bytes()))
    found: dict[str, dict[str, dict[int, Counter[str]]]] = {}
    for condition, recorded in runs.items():
        for kind, known, cases in (
            ("calls", OF_CALLS, traced(recorded["calls"], pairs)),
            (f"calls, {ROUNDS} rounds", OF_CALLS, traced(recorded["calls"], pairs // 2, ROUNDS)),
            ("times", OF_TIMES, timed(recorded["times"], pairs)),
        ):
            own = {method: {effect: Counter() for effect in EFFECTS} for method in known if method in methods}
            for by_method in cases if own else ():
                for method, counts in own.items():
                    case = by_method["bmoe" if method == "bmoe" else "all"]
                    counts[case.effect].update(answers(method, case))
            found[f"{kind}, {condition}"] = own  # type: ignore[assignment]
    return found


def answers(method: str, case: Case) -> Iterator[str]:
    """What the method says of the location, by whether that is right."""
    check = Registry().get("check", method)
    for change in check.compare(case.baseline, case.target, check.Params(), CheckContext()):
        if case.effect == 0 or change.location.startswith(case.location):
            yield _ANSWERS.get(change.result, "silent")


def traced(runs: list[Mapping[str, Any]], pairs: int, rounds: int = 1) -> Iterator[dict[str, Case]]:
    """Pairs of traces of so many pooled runs; the functions take turns in being slowed down.

    For the method that looks at the order of growth alone, what the function is slowed down by grows with the
    size of its input, up to the effect.
    """
    chosen = random.Random(16)
    names = sorted(runs[0])
    for number in range(pairs):
        both = chosen.sample(runs, 2 * rounds)
        old, new = both[::2], both[1::2]
        unchanged = _trace(old), _trace(new)
        name = names[number % len(names)]
        for effect in EFFECTS:
            targets = {"all": unchanged[1], "bmoe": unchanged[1]}
            if effect:
                targets = {
                    "all": _trace(new, name, effect, grows=False),
                    "bmoe": _trace(new, name, effect, grows=True),
                }
            yield {key: Case(unchanged[0], target, name, effect) for key, target in targets.items()}


def _trace(
    runs: list[Mapping[str, Any]], slow: str = "", effect: int = 0, *, grows: bool = False
) -> Profile:
    units = {"mixed(time delta)": "us"}
    made = Profile({"header": {"type": "mixed", "cmd": "calls", "units": units, "pooled": len(runs)}})
    for number, uid, (sizes, times) in ((n, *item) for n, run in enumerate(runs) for item in run.items()):
        largest = max(sizes)
        factors = [
            1 + effect / 100 * (size / largest if grows else 1) if uid == slow else 1 for size in sizes
        ]
        made.update_resources(
            {
                "uid": uid,
                "type": "mixed",
                "subtype": "time delta",
                "amount": factor * time / 1000,
                "exclusive": factor * time,
                "structure-unit-size": size,
                "call-order": order,
                RUN: number,
            }
            for order, (size, time, factor) in enumerate(zip(sizes, times, factors, strict=True))
        )
    return RegressionAnalysis().process(made, RegressionParams("full"), NO_POSTPROCESS_CONTEXT)


def timed(commands: Mapping[str, Mapping[str, list[int]]], pairs: int) -> Iterator[dict[str, Case]]:
    """Pairs of blocks of runs, one after the other as the collector measures them."""
    chosen = random.Random(16)
    for number in range(pairs):
        command = sorted(commands)[number % len(commands)]
        clocks = commands[command]
        old, new = chosen.sample(range(len(clocks["real"]) // REPEAT), 2)
        for effect in EFFECTS:
            pair = _times(clocks, old, 0), _times(clocks, new, effect)
            yield {"all": Case(*pair, "command", effect)}


def _times(clocks: Mapping[str, list[int]], block: int, effect: int) -> Profile:
    made = Profile({"header": {"type": "time", "cmd": "command", "units": {"time": "s"}}})
    made.update_resources(
        {"uid": "command", "type": "time", "subtype": clock, "order": order, "amount": time / 1e6}
        for clock, times in clocks.items()
        for order, time in enumerate(
            ((1 + effect / 100) * time for time in times[REPEAT * block : REPEAT * (block + 1)]), 1
        )
    )
    return made


def table(found: Mapping[str, Any], before: Mapping[str, Any] | None) -> Iterator[str]:
    """Lines of Markdown: in percent of the answers, false alarms at 0, and right / wrong ones above."""
    effects = [f"{effect} %" for effect in EFFECTS]
    yield f"| data | method | {' | '.join(effects)} |"
    yield f"| --- | --- |{' --- |' * len(effects)}"
    for data, methods in found.items():
        for method, counts in methods.items():
            rows = [("", counts)]
            if before:
                rows = [(" before", before[data][method]), (" now", counts)]
            for label, row in rows:
                cells = [_cell(effect, row[str(effect)]) for effect in EFFECTS]
                yield f"| {data} | {method.upper()}{label} | {' | '.join(cells)} |"


def _cell(effect: int, counts: Mapping[str, int]) -> str:
    every = sum(counts.values()) or 1
    right, wrong, perhaps, perhaps_not = (
        100 * counts.get(kind, 0) / every for kind in ("right", "wrong", "perhaps right", "perhaps wrong")
    )
    if not effect:
        return f"{right + wrong:.1f}"
    return f"{right:.0f} / {wrong:.0f} ({perhaps:.0f} / {perhaps_not:.0f})"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("methods", nargs="*", default=OF_CALLS)
    parser.add_argument("--pairs", type=int, default=64)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--before", type=Path)
    wanted = parser.parse_args()
    found = json.loads(json.dumps(measure(wanted.pairs, list(wanted.methods))))
    if wanted.json:
        wanted.json.write_text(json.dumps(found))
    before = json.loads(wanted.before.read_text()) if wanted.before else None
    print("\n".join(table(found, before)))


if __name__ == "__main__":
    main()
