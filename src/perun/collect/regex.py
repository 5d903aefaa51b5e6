"""Regex collector: the values that a program itself prints, found by regular expressions.

The groups of an expression say what it finds: `value`, and the `name`, `unit` and `size` that belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from perun.collect._common import runs as common
from perun.collect._common.runs import new_profile
from perun.core.errors import JobFailed
from perun.core.process.command import exit_status, failed
from perun.core.process.execution import Execution, Output
from perun.plugin.api import CollectContext, Run
from perun.plugin.params import param, to_mapping
from perun.profile.amounts import LARGER_IS_BETTER, common_unit
from perun.profile.factory import Profile

# The regex collector: runs the command and makes resources of the values in its output.

# Regular expressions for values, and what they find in a text.

GROUPS: Final = ("value", "name", "unit", "size")
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_THOUSANDS: Final = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
_CLOCK: Final = re.compile(r"(?:(\d+):)?(\d+):(\d+(?:\.\d*)?)")


class ValuePattern(NamedTuple):
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

    patterns: Sequence[ValuePattern]
    headings: Sequence[re.Pattern[str]] = ()
    under_heading: bool = False


class ValueMatch(NamedTuple):
    """One value and the `pattern` that found it; `name`, `unit` and `size` are empty if not found."""

    pattern: ValuePattern
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


def find(text: str, patterns: Patterns) -> Iterator[ValueMatch]:
    """All values in the order of the text."""
    found: list[tuple[int, ValuePattern | None, re.Match[str]]] = []
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
            yield ValueMatch(by, known["value"], known["name"] + by.suffix, known["unit"], known["size"])


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


def _of(expression: str, suffix: str = "") -> ValuePattern:
    return ValuePattern(re.compile(expression, re.MULTILINE), suffix=suffix)


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


class ValueKind(NamedTuple):
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


def _named(kind: ValueKind, *names: str) -> dict[str, ValueKind]:
    return dict.fromkeys(names, kind)


_KINDS: Final = {
    **_named(ValueKind("time", "s"), "s", "sec", "secs", "second", "seconds"),
    **_named(ValueKind("time", "s", by=10**3), "ms", "msec", "msecs", "millisecond", "milliseconds"),
    **_named(ValueKind("time", "s", by=10**6), "us", "\u00b5s", "\u03bcs", "usec", "usecs"),
    **_named(ValueKind("time", "s", by=10**6), "microsecond", "microseconds"),
    **_named(ValueKind("time", "s", by=10**9), "ns", "nsec", "nsecs", "nanosecond", "nanoseconds"),
    **_named(ValueKind("time", "s", times=60), "min", "mins", "minute", "minutes"),
    **_named(ValueKind("time", "s", times=3600), "h", "hour", "hours"),
    **_named(ValueKind("memory", "B"), "B", "byte", "bytes"),
    **_named(ValueKind("memory", "B", times=10**3), "kB", "KB"),
    **_named(ValueKind("memory", "B", times=10**6), "MB"),
    **_named(ValueKind("memory", "B", times=10**9), "GB"),
    **_named(ValueKind("memory", "B", times=2**10), "KiB", "kbytes", "Kbytes"),
    **_named(ValueKind("memory", "B", times=2**20), "MiB"),
    **_named(ValueKind("memory", "B", times=2**30), "GiB"),
}
"""`kbytes` is what GNU time calls 1024 bytes."""


def kind_of(unit: str) -> ValueKind:
    """The kind of values of this unit; those of an unknown unit are `mixed` and keep their unit, or have the
    one in which rates compare."""
    if known := _KINDS.get(unit):
        return known
    factor, common = common_unit(unit)
    return ValueKind("mixed", common, factor)


COLLECTOR_TYPE: Final = "mixed"
COLLECTOR_DEFAULT_UNITS: Final = {"time": "s", "memory": "B", "mixed": ""}
MAX_OUTPUT: Final = 64 * 2**20
"""The most bytes of output that one stream of a run may have."""
_SHOWN_LINES: Final = 10
_IGNORE_FAILURE: Final = "correct the command, or take its values anyway with --ignore-failure (-i)"


@dataclass(frozen=True)
class RegexParams:
    """The expressions, the output to search, and how often to run the command."""

    pattern: tuple[str, ...] = param(
        (),
        short="-e",
        metavar="<regex>",
        help="A regular expression that finds values by the group (?P<value>...), and their names, units and "
        "sizes by (?P<name>...), (?P<unit>...) and (?P<size>...). May be repeated.",
    )
    metric: tuple[tuple[str, str], ...] = param(
        (), metavar="<name> <regex>", help="A regular expression for values of this name. May be repeated."
    )
    unit: tuple[tuple[str, str], ...] = param(
        (),
        metavar="<name> <unit>",
        help="The unit of a metric, if its expression has no group (?P<unit>...). May be repeated.",
    )
    heading: tuple[str, ...] = param(
        (),
        metavar="<regex>",
        help="A regular expression that finds the name, unit or size of all later values. May be repeated.",
    )
    ready: tuple[str, ...] = param(
        (), choices=tuple(READY), help="Find the results of this well-known program. May be repeated."
    )
    larger_is_better: tuple[str, ...] = param(
        (),
        metavar="<name>",
        help="A metric, or its unit, of which more is better, as of a throughput. May be repeated.",
    )
    stream: str = param(
        "both", choices=("stdout", "stderr", "both"), help="The output of the command to search."
    )
    warmup: int = param(
        0, short="-w", metavar="<int>", minimum=0, help="Run the command <int> times as a warm-up."
    )
    repeat: int = param(1, short="-r", metavar="<int>", minimum=1, help="Run the command <int> times.")
    timeout: float = common.timeout()
    ignore_failure: bool = param(
        False, short="-i", help="Also take the values if the command fails, and record its `exitcode`."
    )

    def __post_init__(self) -> None:
        names = [name for name, _ in self.metric]
        for name, _ in self.unit:
            if name not in names:
                raise ValueError(f"unit names the metric {name!r}, but metric defines none of this name")
        if not (self.pattern or self.metric or self.ready):
            raise ValueError(
                "one of pattern, metric and ready is needed; ready is one of " + ", ".join(READY)
            )
        own = self.own
        nameless = [one for one in own.patterns if not one.name and "name" not in one.regex.groupindex]
        if len(nameless) > 1 and not any("name" in heading.groupindex for heading in own.headings):
            raise ValueError(
                "several expressions of pattern have no group (?P<name>...), so their values have no names; "
                "use metric instead, which names them"
            )

    @cached_property
    def own(self) -> Patterns:
        """The expressions of `pattern`, `metric` and `heading`, compiled."""
        units = dict(self.unit)
        patterns = [ValuePattern(compiled("pattern", one, ("value",))) for one in self.pattern]
        for name, one in self.metric:
            patterns.append(ValuePattern(compiled("metric", one, ("value",)), name, units.get(name, "")))
        headings = [compiled("heading", one, ("name", "unit", "size")) for one in self.heading]
        return Patterns(patterns, headings)


class RegexCollector:
    """Takes the values that the command prints: its own measurements, or the results of a benchmark.

    Times become seconds and memory bytes, whatever unit the command prints. A size becomes the
    `structure-unit-size`, on which models can depend.
    """

    name: ClassVar[str] = "regex"
    help: ClassVar[str] = "Takes values from the output of a command by regular expressions."
    Params: ClassVar[type] = RegexParams

    def collect(self, run: Run, params: RegexParams, ctx: CollectContext) -> Profile:
        """Run the command `warmup + repeat` times, and take the values of the last `repeat` runs.

        :raises JobFailed: where the command cannot be started, fails (unless the parameters ignore that) or
            takes too long; where an expression finds nothing, or something that is not a number.
        """
        resources: list[dict[str, Any]] = []
        units: dict[str, str] = {}
        with Execution(run, ctx.scratch, params.timeout, output=Output.KEEP) as execution:
            total = params.warmup + params.repeat
            for index in range(total):
                ctx.report(f"running {run}", index, total)
                sample = execution.run()
                if sample.status and not params.ignore_failure:
                    raise failed(run, sample.status, execution.last_errors(), _IGNORE_FAILURE)
                if index < params.warmup:
                    continue
                text = _output(execution, params.stream)
                for metric in _metrics(text, params, run):
                    resource, unit = _resource(metric, run)
                    resource["order"] = index - params.warmup + 1
                    if params.ignore_failure:
                        resource["exitcode"] = exit_status(sample.status)
                    resources.append(resource)
                    units |= unit
            ctx.report(f"running {run}", total, total)
        types = {resource["type"] for resource in resources}
        kind = types.pop() if len(types) == 1 else COLLECTOR_TYPE
        profile = new_profile(run, kind, units, self.name, to_mapping(params))
        if params.larger_is_better:
            better = _known_names(params.larger_is_better, resources)
            profile["header"] = {**profile["header"], LARGER_IS_BETTER: better}
        profile.update_resources(resources)
        return profile


def _known_names(names: Sequence[str], resources: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names as the resources have them: a unit as the one that it was converted to."""
    known = dict.fromkeys(str(one[key]) for key in ("uid", "subtype") for one in resources if key in one)
    found = [name if name in known else kind_of(name).unit for name in names]
    for name, own in zip(names, found, strict=True):
        if own not in known:
            raise JobFailed(
                f"larger_is_better names {name!r}, but no value has this name or unit",
                f"found were {', '.join(list(known)[:_SHOWN_LINES])}",
            )
    return found


def _metrics(text: str, params: RegexParams, run: Run) -> list[ValueMatch]:
    found = list(find(text, params.own))
    without = set(range(len(params.own.patterns))) - {
        position
        for position, pattern in enumerate(params.own.patterns)
        if any(metric.pattern is pattern for metric in found)
    }
    for position in sorted(without):
        pattern = params.own.patterns[position]
        what = f"the metric {pattern.name!r}" if pattern.name else "a pattern"
        raise _no_match(f"{what} finds nothing in the output of {str(run)!r}: {pattern.regex.pattern}", text)
    for name in params.ready:
        ready = list(find(text, READY[name]))
        if not ready:
            raise _no_match(f"the output of {str(run)!r} has no results of {name}", text)
        found += ready
    return found


def _no_match(message: str, text: str) -> JobFailed:
    lines = [line for line in text.splitlines() if line.strip()][-_SHOWN_LINES:]
    end = ["the output ends with:", *("  " + line[:200] for line in lines)]
    shown = end if lines else ["the output is empty"]
    return JobFailed("\n".join([message, *shown]), "correct the expression, or choose another --stream")


def _resource(metric: ValueMatch, run: Run) -> tuple[dict[str, Any], dict[str, str]]:
    """The resource of a value, and the entry for the units of the profile."""
    kind = kind_of(metric.unit or ("s" if is_clock(metric.value) else ""))
    resource = {"amount": kind.convert(_number(metric, metric.value, "value")), "type": kind.type}
    resource["uid"] = metric.name or run.cmd
    if metric.size:
        resource["structure-unit-size"] = _number(metric, metric.size, "size")
    if kind.type == COLLECTOR_TYPE and kind.unit:
        resource["subtype"] = kind.unit
    return resource, {_unit_key(kind): kind.unit}


def _unit_key(kind: ValueKind) -> str:
    return f"{kind.type}({kind.unit})" if kind.type == COLLECTOR_TYPE and kind.unit else kind.type


def _number(metric: ValueMatch, text: str, group: str) -> float:
    value = number(text)
    if value is None:
        expression = metric.pattern.regex.pattern
        hint = f"correct the expression: {expression}"
        raise JobFailed(f"the {group} that the expression finds is not a number: {text!r}", hint)
    return value


def _output(execution: Execution, stream: str) -> str:
    wanted: Sequence[str] = ("stdout", "stderr") if stream == "both" else (stream,)
    return plain("\n".join(_read(execution.output(name)) for name in wanted))


def _read(path: Path) -> str:
    size = path.stat().st_size
    if size > MAX_OUTPUT:
        raise JobFailed(
            f"the command wrote {size:,} bytes of output, more than the {MAX_OUTPUT:,} that Perun searches",
            "have the command write less, or redirect what has no values",
        )
    return path.read_bytes().decode("utf-8", "replace")


PLUGIN = RegexCollector
