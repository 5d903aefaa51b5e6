"""What was measured before: the value of the same configuration in the nearest ancestor that has one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.errors import DamagedStore, VersionControlError
from perun.porcelain.known import KnownFacts
from perun.porcelain.repository import Repository
from perun.profile import measured
from perun.profile.head import Configuration, Head
from perun.profile.measured import Measured
from perun.store.facts import Fact

if TYPE_CHECKING:
    from perun.profile.factory import Profile

MOST_VERSIONS: Final = 2000
"""Ancestors that are looked at before the search ends."""


class Wanted(NamedTuple):
    """What is looked for: values of a configuration on machines of one class."""

    configuration: Configuration
    machine: str
    metric: str
    unit: str


class Earlier(NamedTuple):
    """What was found: the value, of all profiles of the version together, and the version."""

    measured: Measured
    minor_version: str


def wanted_of(configuration: Configuration, fact: Fact) -> Wanted | None:
    """What is looked for beside a profile; None if it has no value, or is incomplete."""
    value = fact.measured
    if value is None or fact.incomplete:
        return None
    return Wanted(configuration, fact.machine, value.metric, value.unit)


def of_version(
    repo: Repository, minor_version: str, known: KnownFacts | None = None
) -> dict[Wanted, Measured]:
    """The values of the complete profiles that are registered in the version, pooled by what they are of.

    They are in the order in which the profiles were made.

    :param known: reads what the cache of facts lacks; its bounds are those of the command.
    :raises DamagedStore: if its index cannot be read.
    """
    infos = [entry.info() for entry in repo.store.indexes.read(minor_version)]
    infos.sort(key=lambda info: info.time)
    facts = (known or KnownFacts(repo)).of_version(minor_version, infos)
    found: dict[Wanted, list[Measured]] = {}
    for info in infos:
        fact = facts.get(info)
        wanted = None if fact is None else wanted_of(info.configuration, fact)
        if wanted is not None and fact is not None and fact.measured is not None:
            found.setdefault(wanted, []).append(fact.measured)
    return {wanted: measured.pooled(values) for wanted, values in found.items()}


def nearest(
    repo: Repository,
    minor_version: str,
    wanted: Iterable[Wanted],
    known: KnownFacts | None = None,
    most: int = MOST_VERSIONS,
    *,
    itself: bool = False,
) -> dict[Wanted, Earlier]:
    """The values in the nearest ancestors of the version.

    What cannot be read is passed over: these values are shown beside others, `perun fsck` names the damage.

    :param wanted: read only if there is an ancestor with profiles.
    :param known: as in :func:`of_version`. :param most: ancestors that are looked at.
    :param itself: look in the version itself first; else it is left out.
    """
    open_: set[Wanted] | None = None
    found: dict[Wanted, Earlier] = {}
    known = known or KnownFacts(repo)
    try:
        for number, version in enumerate(repo.vcs.walk_subjects(minor_version)):
            checksum = version.checksum
            if number > most:
                break
            if (checksum == minor_version and not itself) or not repo.store.indexes.has(checksum):
                continue
            open_ = set(wanted) if open_ is None else open_
            if not open_:
                break
            try:
                values = of_version(repo, checksum, known)
            except DamagedStore:
                continue
            for one in open_ & values.keys():
                found[one] = Earlier(values[one], checksum)
            open_ -= found.keys()
    except VersionControlError:
        pass  # there is no history yet
    return found


def of_profile(repo: Repository, minor_version: str, profile: Profile, fact: Fact) -> Earlier | None:
    """What :func:`nearest` finds for a profile of the version, of which `fact` is known."""
    wanted = wanted_of(Head.of(profile).configuration, fact)
    return None if wanted is None else nearest(repo, minor_version, [wanted]).get(wanted)
