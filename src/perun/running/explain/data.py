"""What `perun explain` answers with."""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from perun.plugin.api import MinorVersion
from perun.profile.changes import PerformanceChange

_NO_SHARE: Final = ("temporary", "calls")
"""Metrics that say nothing of how much of the program it is."""


class CostChange(NamedTuple):
    """What one function, or the whole program, costs by one metric before and after.

    :param metric: `instructions`, `time`, or of memory `allocated`, `allocations`, `peak`, `leaked` ...
    :param before: and :param after: in `unit`; 0 where it was not measured there.
    :param low: and :param high: the interval of the ratio; None where the metric is counted exactly.
    :param whole: what the program costs by this metric before.
    :param location: of the series that `perun check` tells it of, with its :param verdict: and the ratio
        :param reported: by it; None of what only the two profiles tell.
    """

    metric: str
    unit: str
    before: float
    after: float
    whole: float
    low: float | None = None
    high: float | None = None
    location: str = ""
    verdict: PerformanceChange | None = None
    reported: float | None = None

    @property
    def exact(self) -> bool:
        """Whether it is counted, and repeats."""
        return self.low is None

    @property
    def ratio(self) -> float | None:
        """After by before; None where there was nothing before."""
        if self.reported is not None:
            return self.reported
        return self.after / self.before if self.before else None

    @property
    def amounts_fit(self) -> bool:
        """Whether the two amounts may stand beside the interval: means of what scatters, as of calls of many
        sizes, may be in another ratio than its estimate."""
        if self.low is None or self.high is None or not self.before:
            return True
        return self.low <= self.after / self.before <= self.high

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The interval of the ratio; None where there is none."""
        if self.low is None or self.high is None:
            return None if self.ratio is None else (self.ratio, self.ratio)
        return None if math.isinf(self.high) else (self.low, self.high)

    @property
    def share(self) -> float:
        """How much more it is, as a part of the whole program before; negative where it is less."""
        return (self.after - self.before) / (self.whole or max(self.before, self.after) or 1.0)


class CostPart(NamedTuple):
    """What a function spends in a function of a library, or of instructions below one of its callers."""

    name: str
    before: float
    after: float


class AllocatorSite(NamedTuple):
    """A place that allocates. :param place: `words.c:58`. :param allocator: e.g. `malloc`."""

    place: str
    allocator: str
    blocks: tuple[float, float]
    allocated: tuple[float, float]
    leaked: tuple[float, float]


HUNK: Final = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
"""The first line of a hunk of a diff: of both sides the number of its first line, and how many there are; 1
where none is told."""


class HunkLine(NamedTuple):
    """A line of a diff.

    :param mark: `+`, `-`, or a blank of one that did not change. :param old: and :param new: its number on
        either side, 0 where it is not there.
    """

    mark: str
    old: int
    new: int
    text: str


class GrowthChange(NamedTuple):
    """How the cost of a function grows with the input. :param changed: whether the order is surely another.

    :param before: and :param after: formulas. :param rule: why it is so.
    """

    changed: bool
    worse: bool
    before: str
    after: str
    rule: str


class FunctionChange(NamedTuple):
    """A function whose cost changed.

    :param name: of the function. :param source: as profiles name it, may be empty.
    :param path: in the repository, empty if it is not found there. :param first: its first line and
        :param last: the last one in `path`, of the newer version that has it; 0 if not known.
    :param costs: that changed: what it executes, then memory. :param libraries: of the library functions
        that it calls, which are part of its own. :param lines: of the diff within it.
    :param near: changed lines outside of functions that define what it uses, each with its file.
    :param new_callers: and :param gone_callers: by the call graphs.
    :param moved_with: other functions whose changes cancel this one.
    """

    name: str
    source: str
    path: str
    first: int
    last: int
    costs: tuple[CostChange, ...]
    libraries: tuple[CostPart, ...] = ()
    sites: tuple[AllocatorSite, ...] = ()
    growth: GrowthChange | None = None
    new_callers: tuple[str, ...] = ()
    gone_callers: tuple[str, ...] = ()
    lines: tuple[HunkLine, ...] = ()
    near: tuple[tuple[str, HunkLine], ...] = ()
    moved_with: tuple[str, ...] = ()
    inlined: bool = False

    @property
    def location(self) -> str:
        """`words.c:unique`."""
        return f"{self.source}:{self.name}" if self.source else self.name

    @property
    def changed_lines(self) -> int:
        """How many lines of it were added or removed."""
        return sum(line.mark != " " for line in self.lines)

    @property
    def score(self) -> float:
        """How much worse it is: the largest part of the program by any of its costs; negative if better."""
        counted = [cost.share for cost in self.costs if cost.exact and cost.metric not in _NO_SHARE]
        shares = counted or [cost.share for cost in self.costs if cost.metric not in _NO_SHARE]
        grows = 1.0 if self.growth and self.growth.changed and self.growth.worse else 0.0
        worst = max(shares, default=0.0)
        return (worst if worst > 0 else min(shares, default=0.0)) + grows


class Effect(NamedTuple):
    """A function that costs another amount because of a change elsewhere.

    :param calls: how often it is called before and after; None where that is not known.
    """

    function: str
    location: str
    before: float
    after: float
    calls: tuple[float, float] | None = None


class Cause(NamedTuple):
    """A change of the diff, and what it makes cost more.

    :param kind: `function`, `definition` of what functions use, `build`, `data`, and `nothing` for what
        nothing of the diff explains.
    :param name: of the function or the definition; where nothing explains it, the files that may.
    :param first: its first line and :param last: the last one,
        0 where there are none. :param before: instructions of the function itself, else of all functions
        that it changed; :param after: the same.
    :param share: how much more is executed because of it, as a part of the program before.
    :param effects: on other functions, the largest first. :param lines: of the diff.
    :param amounts: what each of these lines executes, those that are gone before; empty where not known.
    """

    kind: str
    name: str
    path: str
    first: int
    last: int
    before: float
    after: float
    share: float
    effects: tuple[Effect, ...] = ()
    lines: tuple[HunkLine, ...] = ()
    amounts: tuple[float, ...] = ()


class OtherFile(NamedTuple):
    """A file of the diff that no function of the report is in.

    :param kind: `build`, `source`, `data`. :param lines: that changed, the first ones, of a file that says
        how the program is built: flags change all functions.
    """

    path: str
    kind: str
    added: int
    removed: int
    lines: tuple[HunkLine, ...] = ()


class CaseReport(NamedTuple):
    """What is found of one configuration.

    :param name: the command with its arguments and workload. :param totals: costs of the whole program.
    :param functions: worst first. :param smaller: how many functions changed by too little to be told.
    :param flames: pages of differential flame graphs, by title.
    :param unseen: what could not be seen, and why.
    :param causes: what of the diff made it so, the one of the largest growth first.
    :param remarks: on the totals, as that counts and times say different things.
    """

    name: str
    totals: tuple[CostChange, ...]
    functions: tuple[FunctionChange, ...]
    smaller: int
    flames: tuple[tuple[str, str], ...]
    unseen: tuple[str, ...]
    causes: tuple[Cause, ...] = ()
    remarks: tuple[str, ...] = ()


class Explanation(NamedTuple):
    """The whole answer.

    :param stored: how many new profiles were stored. :param notes: about the versions.
    :param others: files of the diff without a function of the report.
    """

    base: MinorVersion
    head: MinorVersion
    cases: tuple[CaseReport, ...]
    others: tuple[OtherFile, ...]
    stored: int
    notes: tuple[str, ...]
