"""What is bisected: two versions, and a command with its metric or a script; planned before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from perun.errors import ProfileNotFound, UsageError
from perun.plugin.api import MinorVersion
from perun.porcelain.acknowledged import Acknowledged
from perun.porcelain.bisect.data import Asked
from perun.porcelain.changes.data import Step, VersionChanges
from perun.porcelain.changes.finding import changes
from perun.porcelain.compare.metrics import CLOCKS, PEAK
from perun.porcelain.compare.options import CompareOptions
from perun.porcelain.compare.plan import Case, cases_of, require_own
from perun.porcelain.repository import Repository
from perun.profile.amounts import factor
from perun.wording import listed

_SHOWN = 7
Note = Callable[[str], None]


class _Found(NamedTuple):
    """A step of the history, and the versions that may have brought it."""

    at: VersionChanges
    step: Step


def resolved(repo: Repository, asked: Asked, note: Note) -> Asked:
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
    if asked.good is not None and asked.bad is not None:
        return replace(asked, good=repo.version(asked.good), bad=repo.version(asked.bad))
    if asked.good is None:
        if asked.script:
            raise UsageError("--script needs the ends", "name them: perun bisect GOOD BAD --script CMD")
        return _of_change(asked, _newest_open(repo), note)
    good = repo.version(asked.good)
    found = None if asked.script else _change_of(repo, good, asked)
    if found is not None:
        return _of_change(asked, found, note)
    return replace(asked, good=good, bad=repo.version(None))


def _newest_open(repo: Repository) -> _Found:
    """The newest degradation whose commit is not known, which nothing took back and nobody acknowledged."""
    found, acknowledged = changes(repo), Acknowledged.load(repo)
    degradations = [
        _Found(at, step)
        for at in found.found
        for step in at.steps
        if step.is_degradation
        and not (step.taken_back or step.moved_with)
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


def _change_of(repo: Repository, version: str, asked: Asked) -> _Found | None:
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


def _is_asked_for(step: Step, asked: Asked) -> bool:
    key = step.series
    own = key.configuration
    return (
        asked.location in ("", key.location, key.location.partition(" [")[0], key.location.partition(":")[0])
        and asked.cmd in ("", own.cmd)
        and asked.metric.partition(":")[0] in ("", own.collector, key.type, *_names_of(step))
    )


def _names_of(step: Step) -> Iterator[str]:
    """The names of a clock as the user gives them."""
    if step.series.configuration.collector == "time":
        yield from (name for name, subtype in CLOCKS.items() if subtype == step.series.subtype)


def _of_change(asked: Asked, found: _Found, note: Note) -> Asked:
    key, own = found.step.series, found.step.series.configuration
    ends = found.at.since.checksum, found.at.version.checksum
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
    return replace(
        asked,
        good=ends[0],
        bad=ends[1],
        cmd=asked.cmd or own.cmd,
        args=asked.args or own.args,
        workload=asked.workload or own.workload,
        metric=asked.metric or metric,
        location=asked.location or location,
    )


def case_of(repo: Repository, asked: Asked, typed: Asked | None = None) -> Case:
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


def ends_of(repo: Repository, asked: Asked) -> tuple[MinorVersion, MinorVersion]:
    """The versions that the checksums of both ends name."""
    assert asked.good is not None and asked.bad is not None
    return repo.vcs.get_minor_version_info(asked.good), repo.vcs.get_minor_version_info(asked.bad)
