"""What each method of detection says of pairs whose true change is known: how often it is right and wrong.

    python benchmarks/verdicts_methods.py [--pairs N] [METHOD ...]

The pairs are made of runs of real commands, as :mod:`verdicts_runs` recorded them, quietly and beside busy
loops: both profiles of a pair are of different runs, and the times of one function of the target, or of the
command, are multiplied. So the noise of the machine is in them, and the right answer is known.

It prints the table of `docs/methods.md`, with the figures of the formulas of the manual alone beside it
(:data:`MANUAL`, recorded with the first release that had them), and which goals are met.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from perun.history.check.report import is_degradation
from perun.plugin.api import NO_POSTPROCESS_CONTEXT, CheckContext
from perun.plugin.registry import Registry
from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams
from perun.profile.changes import PerformanceChange
from perun.profile.factory import Profile
from perun.profile.session import RUN

RUNS = Path(__file__).parent.parent / "tests/data/verdicts/runs.json.gz"
EFFECTS = (0, 2, 5, 10, 20, 50, 100)
"""Percent that the target is slower by."""
OF_CALLS = ("aat", "bmoe", "fast", "lreg", "preg", "int", "loc", "eto", "grow", "hlr")
OF_TIMES = ("aat", "hlr")
MANUAL = RUNS.with_name("manual.json")
"""By data and method, and effect: percent of false alarms, or percent of right and of wrong verdicts."""
UNCHANGED = 60
"""Unchanged pairs of traces that `--fail-on severe` is tried on."""
MAX_FALSE = 2.0
"""Percent of unchanged functions that a method may call a definite change."""
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


Found = dict[str, dict[str, dict[int, Counter[str]]]]


class Case(NamedTuple):
    """A pair of profiles; where it is looked at, and what its answer counts for."""

    baseline: Profile
    target: Profile
    location: str
    effect: int


def measure(pairs: int, methods: Sequence[str], effects: Sequence[int] = EFFECTS) -> Found:
    """By condition and data, method and effect, how often each kind of answer was given."""
    runs = json.loads(gzip.decompress(RUNS.read_bytes()))
    found: Found = {}
    for condition, recorded in runs.items():
        for kind, known, cases in (
            ("calls", OF_CALLS, traced(recorded["calls"], pairs, effects=effects)),
            (f"calls, {ROUNDS} rounds", OF_CALLS, traced(recorded["calls"], pairs // 2, ROUNDS, effects)),
            ("times", OF_TIMES, timed(recorded["times"], pairs, effects)),
        ):
            own: dict[str, dict[int, Counter[str]]] = {
                method: {effect: Counter() for effect in effects} for method in known if method in methods
            }
            for by_method in cases if own else ():
                for method, counts in own.items():
                    case = by_method["bmoe" if method == "bmoe" else "all"]
                    counts[case.effect].update(answers(method, case))
            found[f"{kind}, {condition}"] = own
    return found


def answers(method: str, case: Case) -> Iterator[str]:
    """What the method says of the location, by whether that is right."""
    check = Registry().get("check", method)
    for change in check.compare(case.baseline, case.target, check.Params(), CheckContext()):
        if case.effect == 0 or change.location.startswith(case.location):
            yield _ANSWERS.get(change.result, "silent")


def severe(pairs: int) -> dict[str, int]:
    """By condition, how many of so many unchanged traced pairs `--fail-on severe` passes, by all methods."""
    runs = json.loads(gzip.decompress(RUNS.read_bytes()))
    checks = [Registry().get("check", method) for method in OF_CALLS]
    passed = {}
    for condition, recorded in runs.items():
        cases = (by_method["all"] for by_method in traced(recorded["calls"], pairs, effects=(0,)))
        passed[condition] = sum(
            not any(
                is_degradation(change.result, "severe")
                for check in checks
                for change in check.compare(case.baseline, case.target, check.Params(), CheckContext())
            )
            for case in cases
        )
    return passed


def traced(
    runs: list[Mapping[str, Any]], pairs: int, rounds: int = 1, effects: Sequence[int] = EFFECTS
) -> Iterator[dict[str, Case]]:
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
        for effect in effects:
            targets = {"all": unchanged[1], "bmoe": unchanged[1]}
            if effect:
                targets = {
                    "all": _trace(new, name, effect, grows=False),
                    "bmoe": _trace(new, name, effect, grows=True),
                }
            yield {key: Case(unchanged[0], target, name, effect) for key, target in targets.items()}


def _trace(runs: list[Mapping[str, Any]], slow: str = "", effect: int = 0, *, grows: bool = False) -> Profile:
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


def timed(
    commands: Mapping[str, Mapping[str, list[int]]], pairs: int, effects: Sequence[int] = EFFECTS
) -> Iterator[dict[str, Case]]:
    """Pairs of blocks of runs, one after the other as the collector measures them."""
    chosen = random.Random(16)
    for number in range(pairs):
        command = sorted(commands)[number % len(commands)]
        clocks = commands[command]
        old, new = chosen.sample(range(len(clocks["real"]) // REPEAT), 2)
        for effect in effects:
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


def table(found: Found) -> Iterator[str]:
    """Lines of Markdown, see `docs/methods.md`; methods that give the same answers share a line."""
    manual = json.loads(MANUAL.read_text())
    yield f"| data | method | {' | '.join(f'{effect} %' for effect in EFFECTS)} |"
    yield f"| --- | --- |{' --- |' * len(EFFECTS)}"
    for data, methods in found.items():
        rows: dict[str, list[str]] = {}
        for method, counts in methods.items():
            before = manual.get(data, {}).get(method, {})
            row = [_cell(effect, counts[effect], before.get(str(effect))) for effect in EFFECTS]
            same = next((names for names in rows if counts == methods[names.split(", ")[0]]), "")
            if same:
                rows[f"{same}, {method}"] = rows.pop(same)
            else:
                rows[method] = row
        for names, row in rows.items():
            yield f"| {data} | {names.upper()} | {' | '.join(row)} |"


def _cell(effect: int, counts: Counter[str], before: list[float] | None) -> str:
    if not effect:
        now = f"{_percent(counts, 'right', 'wrong'):.1f}"
        return f"{before[0]:.1f} → {now}" if before else now
    now = " / ".join(f"{_percent(counts, kind):.0f}" for kind in ("right", "wrong", "perhaps wrong"))
    return f"{before[0]:.0f} / {before[1]:.0f} → {now}" if before else now


def _percent(counts: Counter[str], *kinds: str) -> float:
    return 100 * sum(counts[kind] for kind in kinds) / (counts.total() or 1)


def goals(found: Found, passed: Mapping[str, int]) -> Iterator[str]:
    """Which goals are met, and by what the others are missed."""
    cells = [
        (f"{method.upper()} ({data})", effect, counts)
        for data, methods in found.items()
        for method, by_effect in methods.items()
        for effect, counts in by_effect.items()
    ]
    for goal, missed in (
        (
            f"a definite change of at most {MAX_FALSE:g} % of what is unchanged",
            [
                f"{name}: {_percent(counts, 'right', 'wrong'):.1f} %"
                for name, effect, counts in cells
                if not effect and _percent(counts, "right", "wrong") > MAX_FALSE
            ],
        ),
        *(
            (
                f"no {what} in the wrong direction at 20 % and more",
                [
                    f"{name} at {effect} %: {_percent(counts, kind):.0f} %"
                    for name, effect, counts in cells
                    if effect >= 20 and counts[kind]
                ],
            )
            for what, kind in (("definite change", "wrong"), ("Maybe", "perhaps wrong"))
        ),
        (
            f"`--fail-on severe` passes {UNCHANGED} of {UNCHANGED} unchanged pairs of traces",
            [f"{number} ({condition})" for condition, number in passed.items() if number < UNCHANGED],
        ),
    ):
        yield f"- {goal}: {'missed by ' + '; '.join(missed) if missed else 'met'}"


def main() -> None:
    """Measure, and print the table and the goals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("methods", nargs="*", default=OF_CALLS)
    parser.add_argument("--pairs", type=int, default=64)
    wanted = parser.parse_args()
    found, passed = measure(wanted.pairs, wanted.methods), severe(UNCHANGED)
    print("\n".join(table(found)), "", *goals(found, passed), sep="\n")
    for condition, number in passed.items():
        print(f"\n`--fail-on severe`, all methods, {condition}: {number} of {UNCHANGED} unchanged pairs pass")


if __name__ == "__main__":
    main()
