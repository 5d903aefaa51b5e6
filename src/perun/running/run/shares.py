"""Versions whose program and input are those of the version before: one is measured, the others share that.

Before the first round each version is entered, and its files are compared. Only then is anything run, to see
what it opens, as runs may write files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from perun.native.changed_code import Ranges
from perun.plugin.api import MinorVersion, Run
from perun.repository.copies import scratch_folder
from perun.repository.jobs import Job
from perun.repository.repository import Repository
from perun.running.run.events import VersionSkipped, VersionStarted
from perun.running.run.identical import executes_any, opens_any, why_identical
from perun.running.run.pre_run import commands, environment
from perun.running.run.schedule import Share, VersionSlot, configuration_of, nearest_before, rounds_of

LONGEST: Final = 60.0
"""Seconds of a run that is looked at; what takes longer is measured."""
_LONGEST_COUNTED: Final = 10.0
"""The same of a run under callgrind, which is often for nothing: most changes are executed."""


class VersionSource(Protocol):
    """What enters one version after the other, so that jobs can run there."""

    def enter(self, slot: VersionSlot) -> VersionStarted | VersionSkipped:
        """Make the version ready to be measured.

        :raises PerunError: if no further version can be.
        """

    def save_changes(self) -> bool:
        """The jobs of the version have run; whether they changed tracked files, which were kept."""


class VersionsAhead:
    """Versions that are entered before their turn: what that has told is told when it comes."""

    def __init__(self, places: VersionSource) -> None:
        self._places = places
        self._first: dict[str, VersionStarted | VersionSkipped] = {}

    def ready(self, version: MinorVersion) -> VersionStarted | VersionSkipped:
        """Enter the version before its turn."""
        entered = self._places.enter(VersionSlot(version, ()))
        self._first.setdefault(version.checksum, entered)
        return entered

    def folder(self, version: MinorVersion) -> Path | None:
        """Where the version is, ready to be measured; None where that fails."""
        entered = self.ready(version)
        return entered.measured_in if isinstance(entered, VersionStarted) else None

    def enter(self, slot: VersionSlot) -> VersionStarted | VersionSkipped:
        """As of :class:`VersionSource`."""
        first = self._first.pop(slot.version.checksum, None)
        if isinstance(first, VersionSkipped):
            return replace(first, round=slot.round)
        entered = self._places.enter(slot)
        if first is None or isinstance(entered, VersionSkipped):
            return entered
        seconds = first.seconds + entered.seconds
        return replace(entered, seconds=seconds, omits_changes=first.omits_changes)

    def save_changes(self) -> bool:
        """As of :class:`VersionSource`."""
        return self._places.save_changes()


class _Question(NamedTuple):
    run: Run
    names: Collection[str] = ()
    code: Ranges = ()


class _Pair(NamedTuple):
    """A version that runs the program of one before it.

    :param asked: runs of both, and names of files that differ: the input is the same if none is opened; or
        code that the other program does not have: it is the same if none is executed.
    """

    version: str
    before: str
    reason: str
    asked: list[_Question]


def looked(
    repo: Repository,
    versions: Sequence[MinorVersion],
    jobs: Mapping[int, Job],
    tasks: Container[tuple[str, int]],
    places: VersionsAhead,
    report: Callable[[str], None],
) -> dict[tuple[str, int], Share]:
    """What each version shares with the nearest one before it that has the job, too.

    :param versions: newest first, so that neighbours are built one after the other.
    :param jobs: by identity; those are looked at whose runs are spread over rounds.
    :param tasks: versions and jobs that are to be measured. :param report: called with the activity.
    """
    by_checksum = {version.checksum: version for version in versions}
    alike = Counter(map(configuration_of, jobs.values()))

    def folder(version: str, what: str) -> Path | None:
        report(f"{version[:10]}: looking {what}")
        return places.folder(by_checksum[version])

    def may_differ(run: Run, names: Collection[str], code: Ranges) -> bool:
        there = folder(run.minor_version, "what it reads" if names else "what it executes")
        if there is None:
            return True
        here = run._replace(cwd=there)
        with scratch_folder(repo) as scratch:
            if names:
                return opens_any(here, names, scratch, LONGEST) is not False
            return executes_any(here, code, scratch, _LONGEST_COUNTED) is not False

    pairs = []
    for key, job in jobs.items():
        if rounds_of(job) > 1 and not job.is_benchmark and alike[configuration_of(job)] == 1:
            own = [version for version in versions if (version.checksum, key) in tasks]
            pairs += [(key, one) for one in _same_programs(repo, own, job, folder)]
    found = {
        (pair.version, key): Share(pair.before, pair.reason)
        for key, pair in pairs
        if not any(may_differ(*one) for one in pair.asked)
    }
    for (version, key), share in found.items():  # of several in a row the first one is measured
        while (share.version, key) in found:
            share = share._replace(version=found[share.version, key].version)
        found[version, key] = share
    return found


def _same_programs(
    repo: Repository,
    versions: Sequence[MinorVersion],
    job: Job,
    folder: Callable[[str, str], Path | None],
) -> Iterator[_Pair]:
    """The pairs of neighbours whose files do not tell that they run something else."""
    loads = [job.workload] if job.generated is None else [one.text for one in job.generated.inputs]
    before = nearest_before(repo, versions)
    for version in reversed(versions):
        new, old, first = folder(version.checksum, "what changed"), None, before.get(version.checksum)
        while first is not None and (old := folder(first, "what changed")) is None:
            first = before.get(first)  # what fails has no measurement to share
        if new is None or old is None or first is None:
            continue
        sides = (
            [Run(job.cmd, job.args, load, there, environment(repo), checksum) for load in loads]
            for there, checksum in ((old, first), (new, version.checksum))
        )
        reason, asked = _why_same(zip(*sides, strict=True), bool(commands(repo)))
        if reason:
            yield _Pair(version.checksum, first, reason, asked)


def _why_same(runs: Iterable[tuple[Run, Run]], prepared: bool) -> tuple[str, list[_Question]]:
    """Why the runs of two versions are the same, and what they must not open for it; empty where they may
    differ."""
    asked: list[_Question] = []

    def reads(run: Run, names: Collection[str]) -> bool:
        asked.append(_Question(run, names))
        return False

    def executes(run: Run, code: Ranges) -> bool:
        asked.append(_Question(run, code=code))
        return False

    reasons = [why_identical(base, head, reads, executes, prepared) for base, head in runs]
    return reasons[-1] if all(reasons) else "", asked
