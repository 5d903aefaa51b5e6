"""`perun status`: where the project stands, and its profiles (manual 3.2.8)."""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from perun.core.errors import VersionControlError
from perun.history.baseline import (
    BaselineComparison,
    HeadlineSeries,
    KnownSummaries,
    SeriesValue,
    compare_with_line,
    headline_series_of,
    lines_of_ancestors,
    rules_of,
    summaries_by_series,
    value_of,
)
from perun.history.log import ChangeConfirmation
from perun.measurement.noise import Kept
from perun.plugin.versions import MinorVersion
from perun.profile.helpers import ProfileInfo
from perun.repository import lookup
from perun.repository.lookup import in_order
from perun.repository.repository import BISECTIONS, PERUN_FOLDER, Repository
from perun.store import tree
from perun.store.changes import ChangeRecord
from perun.store.summaries import ProfileSummary

MOST_ORIGINS: Final = 8
"""Versions that pending profiles are of, for which earlier values are looked for."""
_SHOWN = 7
_UNKNOWN = ProfileSummary()


class RepositoryStatus(NamedTuple):
    """What `perun status` tells; `head` is None before the first commit, `profiles` are in tag order.

    `damaged` are pending files that cannot be read, with the reason. `from_other_machines` are the profiles
    of machines of another class than this one, each with that class; `facts` is what else is known of
    profiles beyond their head, and `unread` how many nothing is known of. `judged` has their values beside
    the version before: of a registered one that of all the version's profiles of its series. `revision` is
    the version that was asked for, as it was spelled, empty for the current one; of another version no
    pending profiles are listed. `bisection` says which bisection is not finished, as `61f3c02..4baf672,
    instructions of sort`; empty if there is none.
    """

    major_version: str
    head: MinorVersion | None
    registered: list[ProfileInfo]
    pending: list[ProfileInfo]
    damaged: list[tuple[str, str]]
    changes: list[ChangeRecord]
    from_other_machines: dict[ProfileInfo, str]
    facts: dict[ProfileInfo, ProfileSummary]
    judged: dict[ProfileInfo, BaselineComparison]
    unread: int = 0
    revision: str = ""
    bisection: str = ""

    def fact(self, info: ProfileInfo) -> ProfileSummary:
        """What is known of the profile beyond its head; an empty fact if nothing is."""
        return self.facts.get(info, _UNKNOWN)

    def value(self, info: ProfileInfo) -> SeriesValue | None:
        """What the profile measured, an incomplete one too; None if that is not known."""
        if info in self.judged:
            return self.judged[info].value
        fact = self.fact(info)
        return None if fact.headline is None else value_of([fact]).by_processor

    @property
    def prefix(self) -> str:
        """What stands before the tags of registered profiles: `HEAD~1:` for another version than the
        current one."""
        if self.head is not None and self.revision == self.head.checksum:
            return f"{self.revision[:10]}:"
        return f"{self.revision}:" if self.revision else ""


def status(repo: Repository, revision: str | None = None) -> RepositoryStatus:
    """The state of a version, the current one if None, and its profiles.

    It writes nothing but the cache of facts, without a lock, where that lacked some.

    :raises VersionControlError: if there is no such version.
    """
    major_version = repo.vcs.get_head_major_version()
    if revision is None:
        head = _head(repo, major_version)
        scan = repo.store.pending.scan()
        damaged = [(problem.path.name, problem.message) for problem in scan.damaged]
        pending = in_order(repo, scan.profiles)
    else:
        head = repo.vcs.get_minor_version_info(repo.version(revision))
        damaged, pending = [], []
    registered = lookup.registered(repo, head.checksum) if head else []
    changes = repo.store.changes.read(head.checksum) if head else []
    known = KnownSummaries(repo)
    facts = known.of([*pending, *registered])
    values = _judged(repo, head.checksum if head else "", registered, pending, facts, known)
    for info in registered:
        if info in values and not values[info].confirmed:
            _mark(changes, info)
    others = _from_other_machines(facts)
    return RepositoryStatus(
        major_version, head, registered, pending, damaged, changes, others, facts, values,
        known.unread, revision or "", "" if revision else _bisection(repo),
    )  # fmt: skip


def _bisection(repo: Repository) -> str:
    """Which bisection is not finished; most repositories have none."""
    if not tree.listing(repo.root / PERUN_FOLDER / BISECTIONS):
        return ""
    from perun.repository import bisections

    asked = bisections.interrupted(repo)
    if asked is None:
        return ""
    good, bad, metric, location, script, benchmark = (
        str(asked.get(name) or "") for name in ("good", "bad", "metric", "location", "script", "benchmark")
    )
    ends = f"{good[:_SHOWN]}..{bad[:_SHOWN]}"
    what = script or " of ".join(filter(None, (metric, location or benchmark)))
    return f"{ends}, {what}" if what else ends


def _judged(
    repo: Repository,
    head: str,
    registered: list[ProfileInfo],
    pending: list[ProfileInfo],
    facts: dict[ProfileInfo, ProfileSummary],
    known: KnownSummaries,
) -> dict[ProfileInfo, BaselineComparison]:
    """The values of the profiles, each beside the version before the one that it is of."""
    rules = rules_of(repo)
    together = {one: value_of(found) for one, found in summaries_by_series(registered, facts).items()}
    alone = set(pending)
    by_version: dict[str, dict[ProfileInfo, tuple[HeadlineSeries, SeriesValue]]] = {head: {}}
    for info, fact in facts.items():
        wanted = headline_series_of(info.configuration, fact)
        if wanted is None or fact.headline is None:
            continue
        version = fact.origin if info in alone and fact.origin else head
        value = value_of([fact]) if info in alone else together[wanted]
        by_version.setdefault(version, {})[info] = wanted, value
    found: dict[ProfileInfo, BaselineComparison] = {}
    kept: Kept = {}
    again = ChangeConfirmation(repo)
    for number, (version, values) in enumerate(by_version.items()):
        looking = bool(version and values and number < MOST_ORIGINS)
        before = (
            lines_of_ancestors(repo, version, (one for one, _ in values.values()), known) if looking else {}
        )
        same: dict[HeadlineSeries, BaselineComparison] = {}  # of the registered ones, which have one value
        for info, (wanted, value) in values.items():
            if info not in alone and wanted in same:
                found[info] = same[wanted]
                continue
            newer = partial(again, version, wanted)
            found[info] = compare_with_line(value, before.get(wanted, ()), rules, again=newer, kept=kept)
            if info not in alone:
                same[wanted] = found[info]
    return found


def _mark(changes: list[ChangeRecord], info: ProfileInfo) -> None:
    """Mark what a check has stored of a command whose difference is not confirmed: its clocks."""
    own = info.configuration
    units = "+".join((own.collector, *own.postprocessors))
    command = " ".join(filter(None, (units, own.cmd, own.args, own.workload)))
    for record in changes:
        if record.command == command and record.info.location.startswith(f"{own.cmd} ["):
            record.info.confirmed = False


def _from_other_machines(facts: dict[ProfileInfo, ProfileSummary]) -> dict[ProfileInfo, str]:
    if not any(fact.machine for fact in facts.values()):
        return {}
    from perun.core import machine

    here = machine.class_of(machine.describe())
    if not here:
        return {}
    return {info: fact.machine for info, fact in facts.items() if fact.machine not in ("", here)}


def _head(repo: Repository, major_version: str) -> MinorVersion | None:
    try:
        return repo.vcs.get_minor_version_info("HEAD")
    except VersionControlError:
        pass  # there is none yet, or the system does not know that spelling
    try:
        checksum = repo.version(None)
    except VersionControlError:
        if major_version in (major.name for major in repo.vcs.walk_major_versions()):
            raise  # it has versions, so something is broken
        return None
    return repo.vcs.get_minor_version_info(checksum)


def set_sort_key(repo: Repository, key: str) -> None:
    """Make `key` the order of profiles, and so of tags, from now on (`status --sort-by`)."""
    from perun.repository import config

    config.set_value(repo, "format.sort_profiles_by", key, scope="local")
