"""What became of a result, by what measuring it again says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perun.fuzz import findings
from perun.fuzz.results import FAULT, HANG, SLOW, Confirmation, Result
from perun.running.fuzz.replay import judged

BEFORE = Confirmation("Degradation", 1.0, "m", "time", 10.0, 9.0, 11.0, 10)
SLOW_ONE = Result("f", SLOW, "s", "s", (), 9, 9000, 24.0, 0.1, 1.0, 3, confirmation=BEFORE)


def ratio(change: str, middle: float, half: float = 0.5) -> findings.Tested:
    said = Confirmation(change, 1.0, "m", "time", middle, middle - half, middle + half, 10)
    return findings.Tested("ok", said)


@pytest.mark.parametrize(
    ("tested", "state"),
    [
        (ratio("NoChange", 1.0), "repaired"),
        (ratio("Optimization", 0.8, 0.1), "repaired"),
        (ratio("MaybeDegradation", 1.1), "unknown"),
        (ratio("Degradation", 5.0), "improved"),
        (ratio("Degradation", 9.5), "remains"),
        (ratio("SevereDegradation", 10.2), "remains"),
        (ratio("SevereDegradation", 20.0), "worse"),
        (findings.Tested("hang", ending="did not end within 10 s"), "worse"),
        (findings.Tested("fault", ending="was killed by SIGSEGV"), "worse"),
    ],
)
def test_the_times_of_a_slow_input_decide_by_their_intervals(tested: findings.Tested, state: str) -> None:
    assert judged(SLOW_ONE, tested, None)[0] == state


@pytest.mark.parametrize(
    ("lines", "state"), [(1.0, "repaired"), (3.0, "improved"), (24.0, "remains"), (40.0, "worse")]
)
def test_executed_lines_decide_where_no_time_does(lines: float, state: str) -> None:
    unknown = findings.Tested("ok", Confirmation("Unknown", 0.0, "m", reason="too few runs"))
    assert judged(replace(SLOW_ONE, confirmation=None), unknown, lines)[0] == state
    assert judged(SLOW_ONE, unknown, None) == ("unknown", "too few runs")
    assert judged(SLOW_ONE, ratio("MaybeDegradation", 900.0), lines)[0] == state


def test_hangs_and_faults_are_repaired_once_the_program_ends() -> None:
    hang, fault = replace(SLOW_ONE, kind=HANG), replace(SLOW_ONE, kind=FAULT)
    assert judged(hang, findings.Tested("hang", ending="e"), None) == ("remains", "e")
    assert judged(fault, findings.Tested("fault", ending="e"), None) == ("remains", "e")
    assert judged(fault, findings.Tested("hang", ending="e"), None)[0] == "worse"
    assert judged(hang, ratio("Degradation", 50.0), None)[0] == "improved"
    assert judged(hang, ratio("NoChange", 1.0), None)[0] == "repaired"
    assert judged(fault, ratio("NoChange", 1.0), None)[0] == "repaired"
