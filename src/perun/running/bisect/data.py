"""What `perun bisect` is asked for, and what it answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple

from perun.core.errors import ProfileNotFound, UsageError
from perun.core.wording import listed
from perun.history.acknowledged import Acknowledgements
from perun.history.changes.data import ChangePoint, VersionChanges
from perun.history.changes.finding import changes
from perun.plugin.api import MinorVersion
from perun.profile.amounts import factor
from perun.repository.repository import Repository
from perun.running.compare.instruments import CLOCKS, PEAK
from perun.running.compare.plan import (
    CompareCase,
    CompareOptions,
    cases_of,
    refuse_with_benchmark,
    require_own,
)

PER_DOUBLING: Final = "x at twice the size"
"""The unit of an order of growth: 2 of n, 4 of n^2; see :func:`perun.models.growth.comparison.doubling`."""
_WHOLE: Final = 0.12
"""How far an exponent may be from a whole number to be written as that."""
SECONDS: Final = 60.0
"""Time for measuring one version, where the user gives none for all of them together."""


MAX_PAIRS: Final = 100
"""Pairs of one version: those that it takes to tell a step of a few percent."""


@dataclass(frozen=True)
class BisectRequest:
    """What the user asks for.

    :ivar good: a revision before the change, or one that `perun changes` names; None for the newest
        degradation whose commit is not known. :ivar bad: a revision with the change; None for HEAD.
    :ivar cmd: the command to measure; where empty, that of the job matrix. :ivar args: and :ivar workload:
        belong to it.
    :ivar metric: as `perun compare` has it; empty for `cpu`, or `instructions` of a location.
    :ivar location: a function, or another place that the collector records; empty for the whole program.
    :ivar script: a command that says whether a version is good; nothing is measured then.
    :ivar budget: seconds for measuring everything. :ivar most_pairs: for one version.
    :ivar pin: keep the program on one core.
    :ivar sizes: workloads over which an order of growth is told.
    :ivar benchmark: the name of a benchmark of a suite, in place of a command; once it is found, the command
        is that of its :ivar harness:, the arguments are its name, and the workload its parameters.
    """

    good: str | None = None
    bad: str | None = None
    cmd: str = ""
    args: str = ""
    workload: str = ""
    metric: str = ""
    location: str = ""
    script: str = ""
    budget: float | None = None
    most_pairs: int = MAX_PAIRS
    pin: bool = True
    sizes: tuple[str, ...] = ()
    benchmark: str = ""
    harness: str = ""


class VersionLabel(Enum):
    """What a version is like."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"
    UNDECIDED = "undecided"


class CostRatio(NamedTuple):
    """The cost of one version by that of another one.

    :param value: the ratio; infinite where the other one costs nothing. :param low: and :param high: its
        interval at 99 %; both are `value` where it is exact.
    :param costs: of the other one and of this one, medians. :param unit: of those.
    """

    value: float
    low: float
    high: float
    costs: tuple[float, float]
    unit: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether it rests on counts that repeat, and not on chance."""
        return self.low == self.high

    @property
    def is_finite(self) -> bool:
        """Whether the interval has bounds."""
        return self.low > 0 and math.isfinite(self.high)

    @property
    def orders(self) -> tuple[str, str] | None:
        """Both orders of growth, as `n` and `n^2`; None where the costs are none."""
        if self.unit != PER_DOUBLING:
            return None
        before, after = map(_order, self.costs)
        return before, after


def _order(per_doubling: float) -> str:
    """`constant`, `n`, `n^1.4` or `n^2`."""
    power = math.log2(per_doubling)
    whole = round(power)
    if abs(power - whole) <= _WHOLE:
        return "constant" if not whole else "n" if whole == 1 else f"n^{whole}"
    return f"n^{power:.2g}"


class VersionEvidence(NamedTuple):
    """What is known of one version.

    :param how: `end`, `stored`, `measured` or `script`.
    :param against: the checksum of the end that it was measured beside; empty if beside none.
    :param why: of one that is skipped or undecided.
    """

    version: MinorVersion
    like: VersionLabel
    how: str
    ratio: CostRatio | None = None
    against: str = ""
    why: str = ""


class BisectResult(NamedTuple):
    """The answer.

    :param first: the first version with the change; None where it may be one of several, or none.
    :param range: the versions that may be the first one, the oldest first; only `first` where that is known;
        empty where the ends do not differ.
    :param parent: the version before them, which is like the good end.
    :param ratio: of the cost of the last of `range` to that of `parent`; of the ends, where these do not
        differ; None of a script.
    :param confirmed: whether `first` differs from `parent`, measured side by side.
    :param what: what was measured, as `instructions of sort of ./app big.txt`.
    :param good: and :param bad: the ends. :param seen: what was found of each version, in the order of time.
    :param measured: versions that were measured or given to the script. :param stored: versions of which what
        is stored decided. :param skipped: versions that cannot be built or run.
    :param merged: whether `first` came by a merge, through which it was searched.
    :param benchmark: the name of the benchmark; empty of a command.
    :param why: what the user should know of the answer; empty if nothing.
    """

    first: MinorVersion | None
    range: tuple[MinorVersion, ...]
    parent: MinorVersion | None
    ratio: CostRatio | None
    confirmed: bool
    what: str
    kind: str
    larger_is_better: bool
    good: MinorVersion
    bad: MinorVersion
    seen: tuple[VersionEvidence, ...]
    measured: int
    stored: int
    skipped: int
    merged: MinorVersion | None = None
    why: str = ""
    benchmark: str = ""

    @property
    def is_degradation(self) -> bool | None:
        """Whether the change made it worse; None of a script, and where there is none."""
        if self.ratio is None or not self.range:
            return None
        return (self.ratio.value > 1) != self.larger_is_better


# What is bisected: two versions, and a command with its metric or a script; planned before anything runs.

_SHOWN = 7
Note = Callable[[str], None]


class _Found(NamedTuple):
    """A step of the history, and the versions that may have brought it."""

    at: VersionChanges
    step: ChangePoint


def resolved(repo: Repository, asked: BisectRequest, note: Note) -> BisectRequest:
    """What is asked for, with both ends as checksums; the command and the metric are those of the change
    where one is named.

    :raises VersionControlError: where a revision is unknown.
    :raises UsageError: where there is no change to look for.
    """
    if asked.script and (asked.cmd or asked.metric or asked.location or asked.sizes):
        raise UsageError(
            "--script judges versions by itself",
            "leave out --cmd, --metric, --location and --sizes, or --script",
        )
    refuse_with_benchmark(
        asked.benchmark,
        asked.harness,
        {"--cmd": asked.cmd, "--args": asked.args, "--workload": asked.workload, "--location": asked.location,
         "--sizes": asked.sizes, "--script": asked.script},
    )  # fmt: skip
    if asked.good is not None and asked.bad is not None:
        return replace(asked, good=repo.version(asked.good), bad=repo.version(asked.bad))
    if asked.good is None:
        if asked.script:
            raise UsageError("--script needs the ends", "name them: perun bisect GOOD BAD --script CMD")
        return _of_change(repo, asked, _newest_open(repo, asked), note)
    good = repo.version(asked.good)
    found = None if asked.script else _change_of(repo, good, asked)
    if found is not None:
        return _of_change(repo, asked, found, note)
    return replace(asked, good=good, bad=repo.version(None))


def _newest_open(repo: Repository, asked: BisectRequest) -> _Found:
    """The newest degradation of what is asked for whose commit is not known, which nothing took back and
    nobody acknowledged."""
    found, acknowledged = changes(repo), Acknowledgements.load(repo)
    degradations = [
        _Found(at, step)
        for at in found.found
        for step in at.steps
        if step.is_degradation
        and _is_of_benchmark(step, asked)
        and not (step.reverted_by or step.moved_with)
        and not acknowledged.covers_any([one.checksum for one in at.possible], step.series.location)
    ]
    # Parts, such as system time, never outvote what stands for a measurement.
    degradations = [one for one in degradations if one.step.leads] or degradations
    open_ones = [one for one in degradations if len(one.at.possible) > 1]
    if open_ones:
        # Of the steps of one version the largest comes first.
        return next(one for one in open_ones if one.at is open_ones[-1].at)
    if degradations:
        commit = degradations[-1].at.version.checksum[:_SHOWN]
        raise UsageError(
            "the commit of each degradation is known: there is nothing to look for",
            f"the newest one is {commit}: perun changes; confirm it with: perun bisect {commit}",
        )
    raise UsageError(
        "what is stored shows no degradation",
        "name the ends: perun bisect GOOD BAD  (BAD is HEAD by default)",
    )


def _change_of(repo: Repository, version: str, asked: BisectRequest) -> _Found | None:
    """The largest step that this version may have brought and that is asked for; None if there is none."""
    try:
        found = changes(repo, pattern="")
    except ProfileNotFound:
        return None
    for at in reversed(found.found):
        if version in (one.checksum for one in at.possible):
            steps = [step for step in at.steps if _is_asked_for(step, asked)]
            if steps:
                return _Found(at, steps[0])
    return None


def _is_asked_for(step: ChangePoint, asked: BisectRequest) -> bool:
    key = step.series
    own = key.configuration
    return (
        _is_of_benchmark(step, asked)
        and asked.location
        in ("", key.location, key.location.partition(" [")[0], key.location.partition(":")[0])
        and asked.cmd in ("", own.cmd)
        and asked.metric.partition(":")[0] in ("", own.collector, key.type, *_names_of(step))
    )


def _is_of_benchmark(step: ChangePoint, asked: BisectRequest) -> bool:
    """Whether it is of the benchmark, where one is named."""
    own = step.series.configuration
    harness = asked.harness.replace("-", "_")
    return asked.benchmark in ("", f"{own.args} {own.workload}".rstrip(), own.args) and harness in (
        "",
        own.collector.partition(".")[0],
    )


def _names_of(step: ChangePoint) -> Iterator[str]:
    """The names of a clock as the user gives them."""
    if step.series.configuration.collector == "time":
        yield from (name for name, subtype in CLOCKS.items() if subtype == step.series.subtype)


def _of_change(repo: Repository, asked: BisectRequest, found: _Found, note: Note) -> BisectRequest:
    key, own = found.step.series, found.step.series.configuration
    asked = replace(asked, good=found.at.since.checksum, bad=found.at.version.checksum)
    clock = next(_names_of(found.step), "")
    if own.collector.replace("_", "-") == PEAK:
        metric, location = PEAK, ""
    elif clock:
        metric, location = clock, ""
    else:
        metric, location = own.collector, key.location
    versions = [one.checksum[:_SHOWN] for one in found.at.possible]
    note(
        f"{key.location} of {' '.join(filter(None, (own.cmd, own.args, own.workload)))} changed by "
        f"{factor(found.step.ratio)} at {'one of ' * (len(versions) > 1)}{listed(versions, 4)}"
    )
    harness = own.collector.partition(".")[0]
    if harness in repo.registry.names("harness"):
        kind = ":".join(filter(None, (key.type, key.subtype)))
        name = f"{own.args} {own.workload}".rstrip()
        return replace(asked, benchmark=name, harness=harness, metric=asked.metric or kind)
    return replace(
        asked,
        cmd=asked.cmd or own.cmd,
        args=asked.args or own.args,
        workload=asked.workload or own.workload,
        metric=asked.metric or metric,
        location=asked.location or location,
    )


def case_of(repo: Repository, asked: BisectRequest, typed: BisectRequest | None = None) -> CompareCase:
    """The one configuration that is measured: that of the job matrix where the command is one of those.

    :param typed: what the user asks for himself, where the rest may be that of profiles.
    :raises UsageError: where there is no command, or the job matrix has several.
    :raises NotTrusted: where others may have brought the profiles, and the user has not said that he trusts
        their command.
    """
    given = tuple(filter(None, (asked.cmd, asked.args, asked.workload)))
    try:
        there = list(cases_of(repo, CompareOptions()))
    except Exception:
        if not asked.cmd:
            raise
        there = []
    fitting = [
        case
        for case in there
        if asked.cmd in ("", case.job.cmd)
        and asked.args in ("", case.job.args)
        and asked.workload in ("", case.job.workload)
    ]
    if len(fitting) > 1:
        wanted = asked.args, asked.workload
        exact = [case for case in fitting if (case.job.args, case.job.workload) == wanted]
        fitting = exact if asked.cmd and len(exact) == 1 else fitting
    if len(fitting) == 1:
        return fitting[0]
    if not fitting and asked.cmd:
        options = CompareOptions(cmd=asked.cmd, args=asked.args, workload=asked.workload)
        (case,) = cases_of(repo, options)
        if typed is not None and given != tuple(filter(None, (typed.cmd, typed.args, typed.workload))):
            require_own(repo, [case.job], "bisecting versions")
        # What the job matrix has of a collector is used for any command.
        units = {unit.name: unit for one in there for unit in one.collectors}
        return case._replace(collectors=tuple(units.values()))
    if not fitting and given:
        raise UsageError(
            "--args and --workload belong to a command", "name it with --cmd (-c); the job matrix has its own"
        )
    if not fitting:
        raise UsageError("there is no command to measure", "name it: perun bisect GOOD BAD -c CMD")
    raise UsageError(
        f"there are {len(fitting)} commands to measure: {listed([str(case.job) for case in fitting], 4)}",
        "name one with --cmd (-c), --args (-a) and --workload (-w)",
    )


def ends_of(repo: Repository, asked: BisectRequest) -> tuple[MinorVersion, MinorVersion]:
    """The versions that the checksums of both ends name."""
    assert asked.good is not None and asked.bad is not None
    return repo.vcs.get_minor_version_info(asked.good), repo.vcs.get_minor_version_info(asked.bad)
