"""What was measured before: the value of the same configuration in the nearest ancestor that has one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from perun.errors import DamagedStore, VersionControlError
from perun.porcelain.repository import Repository
from perun.profile import measured
from perun.profile.head import Configuration
from perun.profile.measured import Measured

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


def of_version(repo: Repository, minor_version: str) -> dict[Wanted, Measured]:
    """The values of the complete profiles that are registered in the version, pooled by what they are of.

    :raises DamagedStore: if its index cannot be read.
    """
    facts = repo.store.facts.of_version(minor_version)
    found: dict[Wanted, list[Measured]] = {}
    for entry in repo.store.indexes.read(minor_version) if facts else ():
        fact = facts.get(entry.checksum)
        if fact is not None and fact.measured is not None and not fact.incomplete:
            value = fact.measured
            wanted = Wanted(entry.info().configuration, fact.machine, value.metric, value.unit)
            found.setdefault(wanted, []).append(value)
    return {wanted: measured.pooled(values) for wanted, values in found.items()}


def nearest(
    repo: Repository, minor_version: str, wanted: Iterable[Wanted], most: int = MOST_VERSIONS
) -> dict[Wanted, Earlier]:
    """The values in the nearest ancestors of the version, itself left out. Reads only.

    What cannot be read is passed over: these values are shown beside others, `perun fsck` names the damage.

    :param most: ancestors that are looked at.
    """
    open_ = set(wanted)
    found: dict[Wanted, Earlier] = {}
    if not open_:
        return found
    stored = frozenset(repo.store.indexes.minors())
    if not stored - {minor_version}:
        return found
    try:
        for number, version in enumerate(repo.vcs.walk_subjects(minor_version)):
            checksum = version.checksum
            if number > most or not open_:
                break
            if checksum == minor_version or checksum not in stored:
                continue
            try:
                values = of_version(repo, checksum)
            except DamagedStore:
                continue
            for one in open_ & values.keys():
                found[one] = Earlier(values[one], checksum)
            open_ -= found.keys()
    except VersionControlError:
        pass  # there is no history yet
    return found
