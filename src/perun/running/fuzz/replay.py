"""`perun fuzz --replay`: what a campaign found is measured again, in another version or after a repair.

Each result runs beside its seed, in turns, as the campaign measured it, and what it executes is counted where
the program is instrumented. What was a hang or a fault is run once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from perun.core.errors import PerunError, ProfileError, UsageError
from perun.core.regular import read_regular
from perun.fuzz import results
from perun.fuzz.corpus import CorpusMember
from perun.fuzz.coverage.api import Coverage
from perun.fuzz.findings import MemberTest
from perun.fuzz.findings import read as read_journal
from perun.fuzz.results import FAULT, HANG, SLOW, Campaign, Confirmation, Result
from perun.plugin.api import MinorVersion, Report, silent
from perun.repository.repository import Repository
from perun.running.fuzz.fuzz import coverage_of
from perun.running.fuzz.keep import choose
from perun.running.fuzz.options import FuzzOptions, entered, trusted
from perun.running.fuzz.testing import Tester

State = Literal["repaired", "improved", "remains", "worse", "unknown"]

REMAINING: Final = frozenset({"remains", "worse"})
CLOSE: Final = 1.1
"""Factor by which two ratios of executed lines differ at least to be another one."""
_LARGEST: Final = 1 << 30
_DEGRADED: Final = "Degradation"


class ReplayResult(NamedTuple):
    """What became of one result.

    :param state: `repaired`: the program is no longer slow with it, or ends as it should; `improved`: it is
        less slow; `remains`; `worse`; or `unknown`. :param reason: of that, as a clause.
    :param before: and :param now: the times beside the seed, as the campaign and as this run measured them.
    :param lines_before: and :param lines_now: executed lines to those of the seed; None where not counted.
    """

    result: Result
    state: State
    reason: str
    before: Confirmation | None
    now: Confirmation | None
    lines_before: float | None
    lines_now: float | None

    def as_json(self) -> dict[str, Any]:
        """As JSON objects."""
        return {
            "file": self.result.file,
            "kind": self.result.kind,
            "state": self.state,
            "reason": self.reason,
            "before": asdict(self.before) if self.before else None,
            "now": asdict(self.now) if self.now else None,
            "lines_before": self.lines_before,
            "lines_now": self.lines_now,
        }


class Replay(NamedTuple):
    """All of it, in which version; `notes` are for the user."""

    version: MinorVersion
    uncommitted: bool
    results: tuple[ReplayResult, ...]
    notes: tuple[str, ...]

    @property
    def remaining(self) -> tuple[ReplayResult, ...]:
        """What is still slow, or fails."""
        return tuple(one for one in self.results if one.state in REMAINING)

    def as_json(self) -> dict[str, Any]:
        """As JSON objects."""
        return {
            "schema": "perun.fuzz.replay/1",
            "version": self.version.checksum,
            "uncommitted": self.uncommitted,
            "results": [one.as_json() for one in self.results],
            "notes": [*self.notes],
        }


def replay(
    repo: Repository,
    folder: Path,
    names: Sequence[str] = (),
    *,
    revision: str | None = None,
    report: Report = silent,
    rng: random.Random | None = None,
) -> Replay:
    """Measure results of a campaign again.

    :param folder: of the campaign. :param names: of results; all where there are none.
    :param revision: the version; None for the working directory as it is.
    :raises ProfileError: if the folder holds no campaign. :raises UsageError: if there is no such result.
    :raises NotTrusted: if the user did not begin it, and has not said that he trusts it.
    :raises PerunError: if the version cannot be checked out or built, or the program cannot be run.
    """
    campaign = results.load(folder)
    chosen = choose(campaign, folder, names) if names else list(campaign.results)
    if not chosen:
        raise UsageError(f"{folder} holds no results to measure again", "give the folder of another campaign")
    options = replace(trusted(repo, folder, campaign.settings, "measuring results again"), minor=revision)
    seeds = _seeds(folder)
    with ExitStack() as stack:
        place = stack.enter_context(entered(repo, options, report))
        tester = Tester(repo, options, place, rng or random.Random(), thorough=True)
        suffix = next((Path(name).suffix for name in seeds), "")
        counted, notes = _started(options, coverage_of(options, place, suffix, "counting"))
        if counted is not None:
            stack.callback(counted.close)
        again = _Again(folder, campaign, seeds, tester, counted, options)
        found = []
        for number, one in enumerate(chosen):
            report(f"measuring {one.file}", number, len(chosen))
            found.append(again.measured(one))
        return Replay(place.version, place.uncommitted, tuple(found), tuple(notes))


def _seeds(folder: Path) -> dict[str, CorpusMember]:
    entries = (entry for entry in read_journal(folder) if entry.kind == "seed")
    return {member.name: member for member in (entry.member() for entry in entries)}


def _started(options: FuzzOptions, make: Callable[[], Coverage]) -> tuple[Coverage | None, list[str]]:
    """What counts, if the program can be counted here; else why not."""
    if not options.coverage:
        return None, []
    coverage = make()
    try:
        coverage.start()
    except PerunError as problem:
        coverage.close()
        return None, [f"executed lines are not counted: {problem.message}"]
    return coverage, [coverage.note] if coverage.note else []


class _Again:
    """Measures results of one campaign."""

    def __init__(
        self,
        folder: Path,
        campaign: Campaign,
        seeds: dict[str, CorpusMember],
        tester: Tester,
        coverage: Coverage | None,
        options: FuzzOptions,
    ) -> None:
        self._folder = folder
        self._campaign = campaign
        self._seeds = seeds
        self._test = tester
        self._coverage = coverage
        self._options = options
        self._counts: dict[str, int] = {}

    def measured(self, one: Result) -> ReplayResult:
        """One result beside its seed.

        :raises ProfileError: where the folder lacks one of them.
        """
        seed = self._seeds.get(one.seed)
        if seed is None:
            raise ProfileError(f"{self._folder} lacks the seed {one.seed!r}", "its logs are needed, too")
        path = self._folder / one.file
        try:
            data = read_regular(path, _LARGEST)
        except OSError as problem:
            raise ProfileError(f"{path} cannot be read: {problem.strerror}", "leave it out") from None
        member = CorpusMember(seed.number + 1, Path(one.file).name, data, one.parent, one.seed, one.rules)
        lines = self._lines(member, seed)
        tested = self._test(member, seed, float("inf"))
        state, reason = judged(one, tested, lines)
        return ReplayResult(one, state, reason, one.confirmation, tested.confirmation, one.ratio, lines)

    def _lines(self, member: CorpusMember, seed: CorpusMember) -> float | None:
        """Executed lines to those of the seed; None where they are not counted, or the run does not end."""
        counts = [self._count(one) for one in (seed, member)]
        return counts[1] / counts[0] if all(counts) and counts[0] and counts[1] else None

    def _count(self, member: CorpusMember) -> int | None:
        if self._coverage is None:
            return None
        if member.name not in self._counts:
            ran = self._coverage.run(member.data, self._options.hang)
            self._counts[member.name] = ran.total if ran.outcome == "ok" else 0
        return self._counts[member.name]


def judged(one: Result, tested: MemberTest, lines: float | None) -> tuple[State, str]:
    """What became of a result.

    Of slow ones the times decide, by their intervals, where the campaign has measured them; else the executed
    lines.

    :param tested: what measuring said. :param lines: executed lines to those of the seed, or None.
    """
    if tested.outcome != "ok":
        ending = tested.ending or tested.outcome
        if one.kind == tested.outcome:
            return "remains", ending
        return "worse", f"now it {ending}" if one.kind == SLOW else f"it was a {one.kind}; now it {ending}"
    now = tested.confirmation
    if one.kind in (HANG, FAULT):
        if now is not None and _DEGRADED in now.change and one.kind == HANG:
            return "improved", "it ends, but takes longer than the seed"
        return "repaired", "it ends as it should"
    if now is not None and now.change != "Unknown":
        return _by_time(one.confirmation, now, lines, one.ratio)
    if lines is not None and one.ratio is not None:
        return _by_lines(one.ratio, lines)
    return "unknown", (now.reason if now else "") or "nothing could be compared"


def _by_time(
    before: Confirmation | None, now: Confirmation, lines: float | None, lines_before: float | None
) -> tuple[State, str]:
    if _DEGRADED not in now.change:
        return "repaired", "it takes no longer than the seed"
    if now.change.startswith("Maybe"):
        if lines is not None and lines_before is not None:
            return _by_lines(lines_before, lines)
        return "unknown", "perhaps it takes longer than the seed: replay it again, or measure more runs (-cp)"
    bounds = (before.low, before.high) if before else (None, None)
    if now.high is not None and bounds[0] is not None and now.high < bounds[0]:
        return "improved", "the interval of its ratio lies below that of the campaign"
    if now.low is not None and bounds[1] is not None and now.low > bounds[1]:
        return "worse", "the interval of its ratio lies above that of the campaign"
    if None in (*bounds, now.low, now.high) and lines is not None and lines_before is not None:
        return _by_lines(lines_before, lines)
    return "remains", "it takes longer than the seed, as in the campaign"


def _by_lines(before: float, now: float) -> tuple[State, str]:
    said = f"{now:,.2f} times the executed lines of the seed, {before:,.2f} in the campaign"
    if now <= CLOSE:
        return "repaired", said
    if now < before / CLOSE:
        return "improved", said
    return ("worse" if now > before * CLOSE else "remains"), said
