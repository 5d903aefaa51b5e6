"""Regular expressions for values, and what they find in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from perun.profile.amounts import common_unit

GROUPS: Final = ("value", "name", "unit", "size")
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_THOUSANDS: Final = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
_CLOCK: Final = re.compile(r"(?:(\d+):)?(\d+):(\d+(?:\.\d*)?)")


class Pattern(NamedTuple):
    """An expression with the group `value`.

    `name` and `unit` are for values of which no group finds them; `suffix` is appended to the name.
    """

    regex: re.Pattern[str]
    name: str = ""
    unit: str = ""
    suffix: str = ""


class Patterns(NamedTuple):
    """Expressions that belong together.

    The name, unit or size that a heading finds holds for the values after it, until another heading finds
    one. With `under_heading`, values before the first heading are ignored.
    """

    patterns: Sequence[Pattern]
    headings: Sequence[re.Pattern[str]] = ()
    under_heading: bool = False


class Metric(NamedTuple):
    """One value and the `pattern` that found it; `name`, `unit` and `size` are empty if not found."""

    pattern: Pattern
    value: str
    name: str
    unit: str
    size: str


def compiled(what: str, expression: str, wanted: Sequence[str]) -> re.Pattern[str]:
    """Compile an expression, in which `^` and `$` match at line ends.

    :param what: the parameter that has it, for messages. :param wanted: groups of which it needs at least
        one.
    :raises ValueError: where it is no regular expression, has none of these groups, or an unknown one.
    """
    try:
        regex = re.compile(expression, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as problem:
        raise ValueError(f"{what} {expression!r} is not a regular expression: {problem}") from None
    for name in regex.groupindex:
        if name not in GROUPS:
            raise ValueError(
                f"{what} {expression!r} has the unknown group {name!r}; groups are {', '.join(GROUPS)}"
            )
    if not set(wanted) & set(regex.groupindex):
        groups = " or ".join(f"(?P<{name}>...)" for name in wanted)
        raise ValueError(f"{what} {expression!r} needs the group {groups}")
    return regex


def plain(text: str) -> str:
    """The text without escape sequences of terminals, and with line feeds as line ends."""
    return _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def find(text: str, patterns: Patterns) -> Iterator[Metric]:
    """All values in the order of the text."""
    found: list[tuple[int, Pattern | None, re.Match[str]]] = []
    for heading in patterns.headings:
        found += [(match.start(), None, match) for match in heading.finditer(text)]
    for pattern in patterns.patterns:
        found += [(match.start(), pattern, match) for match in pattern.regex.finditer(text)]
    held: dict[str, str] = {}
    seen = not patterns.under_heading
    for _, by, match in sorted(found, key=lambda one: one[0]):
        groups = {name: value.strip() for name, value in match.groupdict().items() if value is not None}
        if by is None:
            held |= groups
            seen = True
        elif seen and "value" in groups:
            known = {"name": by.name, "unit": by.unit, "size": "", **held, **groups}
            yield Metric(by, known["value"], known["name"] + by.suffix, known["unit"], known["size"])


def number(text: str) -> float | None:
    """The number that a text such as `1,234.5` or `1e-3` is, or the seconds of `h:mm:ss`; or None."""
    clock = _CLOCK.fullmatch(text)
    if clock:
        hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return hours * 3600 + minutes * 60 + seconds
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        return value if abs(value) < float("inf") else None
    return None


def is_clock(text: str) -> bool:
    """Whether the text is a time such as `h:mm:ss` or `m:ss`."""
    return _CLOCK.fullmatch(text) is not None


# Expressions for the output of well-known programs, as they write it by default.

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


# Units of printed values.
#
# Programs choose the unit by the size of a value. So that `999 ms` and `1.001 s` compare, times are converted
# to seconds, amounts of memory to bytes, and rates to those of both.


class Kind(NamedTuple):
    """The type of the resource of a value, its unit in the profile, and the factor to it, `times / by`."""

    type: str
    unit: str
    times: float = 1
    by: int = 1

    def convert(self, value: float) -> float:
        """The value in the unit of the profile."""
        if self.times == self.by:
            return value
        # A division by 10^9 is rounded once; the factor 1e-9 has no exact representation already.
        return value * self.times / self.by if self.by > 1 else value * self.times


def _named(kind: Kind, *names: str) -> dict[str, Kind]:
    return dict.fromkeys(names, kind)


_KINDS: Final = {
    **_named(Kind("time", "s"), "s", "sec", "secs", "second", "seconds"),
    **_named(Kind("time", "s", by=10**3), "ms", "msec", "msecs", "millisecond", "milliseconds"),
    **_named(Kind("time", "s", by=10**6), "us", "\u00b5s", "\u03bcs", "usec", "usecs"),
    **_named(Kind("time", "s", by=10**6), "microsecond", "microseconds"),
    **_named(Kind("time", "s", by=10**9), "ns", "nsec", "nsecs", "nanosecond", "nanoseconds"),
    **_named(Kind("time", "s", times=60), "min", "mins", "minute", "minutes"),
    **_named(Kind("time", "s", times=3600), "h", "hour", "hours"),
    **_named(Kind("memory", "B"), "B", "byte", "bytes"),
    **_named(Kind("memory", "B", times=10**3), "kB", "KB"),
    **_named(Kind("memory", "B", times=10**6), "MB"),
    **_named(Kind("memory", "B", times=10**9), "GB"),
    **_named(Kind("memory", "B", times=2**10), "KiB", "kbytes", "Kbytes"),
    **_named(Kind("memory", "B", times=2**20), "MiB"),
    **_named(Kind("memory", "B", times=2**30), "GiB"),
}
"""`kbytes` is what GNU time calls 1024 bytes."""


def kind_of(unit: str) -> Kind:
    """The kind of values of this unit; those of an unknown unit are `mixed` and keep their unit, or have the
    one in which rates compare."""
    if known := _KINDS.get(unit):
        return known
    factor, common = common_unit(unit)
    return Kind("mixed", common, factor)
