"""`perun status`: where the project stands, and its profiles (manual 3.2.8)."""

from __future__ import annotations

from typing import NamedTuple

from perun.errors import VersionControlError
from perun.plugin.api import MinorVersion
from perun.porcelain import lookup
from perun.porcelain.ordering import in_order
from perun.porcelain.repository import Repository
from perun.profile.helpers import ProfileInfo
from perun.store.changes import ChangeRecord
from perun.store.facts import Fact


class Status(NamedTuple):
    """What `perun status` tells; `head` is None before the first commit, `profiles` are in tag order.

    `damaged` are pending files that cannot be read, with the reason. `from_other_machines` are the profiles
    of machines of another class than this one, each with that class; `facts` is what else is known of
    profiles beyond their head.
    """

    major_version: str
    head: MinorVersion | None
    registered: list[ProfileInfo]
    pending: list[ProfileInfo]
    damaged: list[tuple[str, str]]
    changes: list[ChangeRecord]
    from_other_machines: dict[ProfileInfo, str]
    facts: dict[ProfileInfo, Fact]

    def fact(self, info: ProfileInfo) -> Fact:
        """What is known of the profile beyond its head; an empty fact if nothing is."""
        return self.facts.get(info, Fact())


def status(repo: Repository) -> Status:
    """The state of the current version and its profiles. Reads only."""
    major_version = repo.vcs.get_head_major_version()
    head = _head(repo, major_version)
    registered = lookup.registered(repo, head.checksum) if head else []
    changes = repo.store.changes.read(head.checksum) if head else []
    scan = repo.store.pending.scan()
    damaged = [(problem.path.name, problem.message) for problem in scan.damaged]
    pending = in_order(repo, scan.profiles)
    facts = _facts(repo, head.checksum if head else "", registered, pending)
    others = _from_other_machines(facts)
    return Status(major_version, head, registered, pending, damaged, changes, others, facts)


def _facts(
    repo: Repository, head: str, registered: list[ProfileInfo], pending: list[ProfileInfo]
) -> dict[ProfileInfo, Fact]:
    """What is known of the profiles."""
    found: dict[ProfileInfo, Fact | None] = {}
    if pending:
        of_pending = repo.store.facts.of_pending()
        found = {info: of_pending.get((info.source, info.time)) for info in pending}
    if registered:
        of_version = repo.store.facts.of_version(head)
        found |= {info: of_version.get(info.checksum) for info in registered}
    return {info: fact for info, fact in found.items() if fact is not None}


def _from_other_machines(facts: dict[ProfileInfo, Fact]) -> dict[ProfileInfo, str]:
    if not any(fact.machine for fact in facts.values()):
        return {}
    from perun import machine

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
    from perun.porcelain import config

    config.set_value(repo, "format.sort_profiles_by", key, scope="local")
