"""The regex collector: runs the command and makes resources of the values in its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from perun.collect._common import runs as common
from perun.collect._common.runs import new_profile
from perun.collect.regex.patterns import (
    READY,
    Kind,
    Metric,
    Pattern,
    Patterns,
    compiled,
    find,
    is_clock,
    kind_of,
    number,
    plain,
)
from perun.core.errors import JobFailed
from perun.core.process.command import exit_status, failed
from perun.core.process.execution import Execution, Output
from perun.plugin.api import CollectContext, Run
from perun.plugin.params import param, to_mapping
from perun.profile.factory import Profile
from perun.profile.units import LARGER_IS_BETTER

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
        patterns = [Pattern(compiled("pattern", one, ("value",))) for one in self.pattern]
        for name, one in self.metric:
            patterns.append(Pattern(compiled("metric", one, ("value",)), name, units.get(name, "")))
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


def _metrics(text: str, params: RegexParams, run: Run) -> list[Metric]:
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


def _resource(metric: Metric, run: Run) -> tuple[dict[str, Any], dict[str, str]]:
    """The resource of a value, and the entry for the units of the profile."""
    kind = kind_of(metric.unit or ("s" if is_clock(metric.value) else ""))
    resource = {"amount": kind.convert(_number(metric, metric.value, "value")), "type": kind.type}
    resource["uid"] = metric.name or run.cmd
    if metric.size:
        resource["structure-unit-size"] = _number(metric, metric.size, "size")
    if kind.type == COLLECTOR_TYPE and kind.unit:
        resource["subtype"] = kind.unit
    return resource, {_unit_key(kind): kind.unit}


def _unit_key(kind: Kind) -> str:
    return f"{kind.type}({kind.unit})" if kind.type == COLLECTOR_TYPE and kind.unit else kind.type


def _number(metric: Metric, text: str, group: str) -> float:
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
