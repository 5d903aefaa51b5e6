"""What the optimisations work on, and what comes out: functions kept or dropped, and how often they are
recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from perun.plugin.api import Answer

if TYPE_CHECKING:
    from perun.collect._calls.optimizations.settings import OptimizationSettings
    from perun.native.callgraph.graph import CallGraph


NOTHING: Mapping[str, Any] = MappingProxyType({})


class CallStatistics(NamedTuple):
    """What was recorded of a function: all its calls, the median and the interquartile range of their times
    in microseconds, and how many came from which caller."""

    calls: int
    median: float = 0.0
    iqr: float = 0.0
    callers: Mapping[str, int] = NOTHING


class EarlierProfiles(NamedTuple):
    """What is known of functions from earlier profiles, by their names in the graph.

    :ivar seen: what was recorded. :ivar bounds: the class of the static bound, one of `COMPLEXITIES`.
    """

    seen: Mapping[str, CallStatistics] = NOTHING
    bounds: Mapping[str, str] = NOTHING


class ProbeSwitching(NamedTuple):
    """What an engine does while the program runs.

    :ivar threshold: recorded calls after which a function is no longer probed; 0 for no limit.
    :ivar reattach: whether it is probed again later.
    :ivar period: seconds after which all probes but that of the entry are switched off, or on again; 0 for
        never.
    """

    threshold: int = 0
    reattach: bool = False
    period: float = 0.0


class MethodEffect(NamedTuple):
    """What one method wants: functions to drop with the reasons, functions to sample, and what the engine
    does."""

    dropped: Mapping[str, str] = NOTHING
    sampling: Mapping[str, int] = NOTHING
    switching: ProbeSwitching = ProbeSwitching()


Optimization = Callable[
    ["CallGraph", "CallGraph | None", EarlierProfiles, "OptimizationSettings"], MethodEffect
]
"""A method: from the graph of the version, that of the earlier version (None where none is known), what
earlier profiles say, and the settings."""


class TraceDecision(NamedTuple):
    """Whether a function is traced, by which method that was decided, and why; one call in `sampling` is
    recorded."""

    kept: bool
    method: str = ""
    reason: str = ""
    sampling: int = 1


class TraceChoice(NamedTuple):
    """All decisions by the names of functions, and what the engine does while the program runs.

    :ivar changed: the functions that changed since the earlier version, with what changed; no method drops
        these.
    :ivar renamed: new names to old ones. :ivar notes: what a method lacked.
    """

    decisions: Mapping[str, TraceDecision] = NOTHING
    switching: ProbeSwitching = ProbeSwitching()
    changed: Mapping[str, str] = NOTHING
    renamed: Mapping[str, str] = NOTHING
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the functions to trace."""
        return tuple(name for name, one in self.decisions.items() if one.kept)


# What is told of the optimisations: in the profile, and by `--explain` as text and as JSON.


class ReportRow(NamedTuple):
    """One function of the program: its uid, whether it is traced, which method decided that, why, and of how
    many calls one is recorded."""

    uid: str
    traced: bool
    method: str = ""
    reason: str = ""
    sampling: int = 1


class Report(NamedTuple):
    """What was chosen. :ivar previous: the version whose call graph was compared; empty where there is
    none."""

    rows: tuple[ReportRow, ...]
    settings: OptimizationSettings
    choice: TraceChoice
    graph: str
    previous: str = ""

    def region(self) -> dict[str, Any]:
        """The entry `optimization` of the region `trace` of a profile.

        A uid that several functions have is traced if one of them is.
        """
        traced = {row.uid for row in self.rows if row.traced}
        return {
            **self.settings.to_mapping(),
            "graph": self.graph,
            "previous": self.previous,
            "functions": len(self.rows),
            "traced": sum(row.traced for row in self.rows),
            "dropped": dict(Counter(row.method for row in self.rows if not row.traced)),
            "not-traced": {row.uid: [row.method, row.reason] for row in self.rows if row.uid not in traced},
            "sampling": {row.uid: row.sampling for row in self.rows if row.traced and row.sampling > 1},
            "changed": dict(self.choice.changed),
            "renamed": dict(self.choice.renamed),
            "notes": list(self.choice.notes),
        }

    def answer(self, *, as_json: bool) -> Answer:
        """What `--explain` prints."""
        data = {
            **self.region(),
            "functions": [row._asdict() for row in self.rows],
            "switching": self.choice.switching._asdict(),
        }
        del data["not-traced"]
        return Answer(json.dumps(data, indent=2) if as_json else "\n".join(self._lines()), data)

    def _lines(self) -> Iterator[str]:
        counts = Counter(row.method for row in self.rows if not row.traced)
        traced = sum(row.traced for row in self.rows)
        methods = ", ".join(self.settings.methods) or "none"
        yield f"optimizations: {methods} (pipeline {self.settings.pipeline}; {self.graph} call graph)"
        if self.previous:
            yield f"compared with version {self.previous[:10]}: {len(self.choice.changed)} functions changed"
        yield f"{traced} of {len(self.rows)} functions are traced" + _told(counts)
        switching = self.choice.switching
        if switching.threshold:
            again = ", and probed again later" if switching.reattach else ""
            yield f"a function is no longer probed after {switching.threshold:,} calls{again}"
        if switching.period:
            yield f"all probes but the entry's are switched off and on every {switching.period:g} s"
        width = min(max((len(row.uid) for row in self.rows), default=0), 48)
        for row in sorted(self.rows, key=lambda row: (not row.traced, row.method, row.uid)):
            yield _line(row, width)
        for note in self.choice.notes:
            yield f"note: {note}"


def _told(counts: Mapping[str, int]) -> str:
    parts = [f"{method} drops {count}" for method, count in counts.items()]
    return f"; {', '.join(parts)}" if parts else ""


def _line(row: ReportRow, width: int) -> str:
    word = "traced " if row.traced else "dropped"
    sampled = f"1 in {row.sampling:,} calls" if row.sampling > 1 else ""
    why: Iterable[str] = (f"{row.method}: {row.reason}" if row.method else row.reason, sampled)
    return f"{word}  {row.uid:{width}}  {'; '.join(filter(None, why))}".rstrip()
