"""Expressions for the output of well-known programs, as they write it by default."""

from __future__ import annotations

import re
from typing import Final

from perun.collect.regex.patterns import Pattern, Patterns

_NUMBER: Final = r"\d[\d.]*(?:e[+-]?\d+)?"
_TIME: Final = r"ns|us|ms|s"
# The standard deviation of repetitions is not the time of a benchmark.
_GOOGLE_NAME: Final = r"^(?P<name>(?!\S*_stddev\s)\S+?)(?:/(?P<size>\d+))?\s+"
_CELL: Final = r"\d[\d,.]*(?:e[+-]?\d+)?(?:\s+\([^)]*\))?"


def _of(expression: str, suffix: str = "") -> Pattern:
    return Pattern(re.compile(expression, re.MULTILINE), suffix=suffix)


GOOGLE_BENCHMARK: Final = Patterns(
    (
        _of(rf"{_GOOGLE_NAME}(?P<value>{_NUMBER}) (?P<unit>{_TIME})\s+{_NUMBER} (?:{_TIME})\s+\d+(?!\S)"),
        _of(
            rf"{_GOOGLE_NAME}{_NUMBER} (?:{_TIME})\s+(?P<value>{_NUMBER}) (?P<unit>{_TIME})\s+\d+(?!\S)",
            " (cpu)",
        ),
    )
)
"""The real time of each benchmark, and its CPU time; the size of `BM_sort/1024` is 1024."""

HYPERFINE: Final = Patterns(
    (
        _of(r"^\s*Time \((?:mean ± \w|abs ≡)\):\s+(?P<value>[\d.]+) (?P<unit>\S+)"),
        _of(r"\[User: (?P<value>[\d.]+) (?P<unit>[^\s,\]]+)", " (user)"),
        _of(r"\[User: [^\]]*System: (?P<value>[\d.]+) (?P<unit>[^\s,\]]+)", " (system)"),
    ),
    (re.compile(r"^Benchmark #?\d+: (?P<name>.+)$", re.MULTILINE),),
    under_heading=True,
)
"""The mean times of each command."""

PYTEST_BENCHMARK: Final = Patterns(
    (
        _of(
            rf"^(?P<name>\S.*?)(?:\[(?P<size>\d+)\])?\s+{_CELL}\s+{_CELL}\s+"
            r"(?P<value>\d[\d,.]*(?:e[+-]?\d+)?)(?!\S)"
        ),
    ),
    (re.compile(r"^Name \(time in (?P<unit>[^)\s]+)\)\s+Min\s+Max\s+Mean\b", re.MULTILINE),),
    under_heading=True,
)
"""The column `Mean` of the table; the size of `test_sort[1024]` is 1024."""

TIME_V: Final = Patterns(
    (
        _of(r"^\s*(?P<name>(?:User|System) time) \((?P<unit>seconds)\): (?P<value>[\d.]+)$"),
        _of(r"^\s*(?P<name>Elapsed) \(wall clock\) time \([^)]*\): (?P<value>[\d:.]+)$"),
        _of(r"^\s*(?P<name>Maximum resident set size) \((?P<unit>kbytes)\): (?P<value>\d+)$"),
        _of(r"^\s*(?P<name>M(?:aj|in)or) \([^)]*\) page faults: (?P<value>\d+)$", " page faults"),
        _of(r"^\s*(?P<name>(?:Vol|Invol)untary context switches|Swaps): (?P<value>\d+)$"),
        _of(r"^\s*(?P<name>File system (?:in|out)puts): (?P<value>\d+)$"),
    )
)
"""What GNU `time -v` prints."""

READY: Final = {
    "google-benchmark": GOOGLE_BENCHMARK,
    "hyperfine": HYPERFINE,
    "pytest-benchmark": PYTEST_BENCHMARK,
    "time-v": TIME_V,
}
