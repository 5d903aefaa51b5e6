"""`perun fetch`: which profiles a remote has, of which versions; none of them is fetched."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from perun.plugin.api import MinorVersion
from perun.porcelain import walking
from perun.porcelain.repository import Repository
from perun.porcelain.sharing.known import Known
from perun.porcelain.sharing.registered import caches, registered_here
from perun.porcelain.sharing.transfer import unclashed
from perun.remote.contract import Remote
from perun.remote.register import Entry


class HeldVersion(NamedTuple):
    """A version of which the remote has profiles, or which has profiles here.

    :param info: what version control says of it, None if it is not in this clone.
    :param there: profiles that the remote has. :param not_here: those of them that are not here.
    :param not_there: profiles that are here, and that the remote does not have.
    """

    version: str
    info: MinorVersion | None
    there: list[Entry]
    not_here: int
    not_there: int


def fetch(repo: Repository, remote: Remote, minors: Collection[str] | None = None) -> list[HeldVersion]:
    """The versions with profiles there or here, the newest first; those that are not in this clone last.

    :param minors: only these versions; all if None.
    :raises RemoteError: if the remote cannot be read.
    """
    known = Known(remote, caches(repo))
    union = known.refresh()
    known.keep()
    here: dict[str, set[Entry]] = {}
    for entry in registered_here(repo, minors):
        here.setdefault(entry.minor, set()).add(unclashed(entry))
    there: dict[str, list[Entry]] = {}
    for one in union:
        if minors is None or one.entry.minor in minors:
            there.setdefault(one.entry.minor, []).append(one.entry)
    infos = walking.infos(repo, here.keys() | there.keys())
    found = []
    for version in here.keys() | there.keys():
        ours, theirs = here.get(version, set()), there.get(version, [])
        not_here = sum(entry not in ours for entry in theirs)
        not_there = len(ours.difference(theirs))
        theirs.sort(key=_by_time)
        found.append(HeldVersion(version, infos.get(version), theirs, not_here, not_there))
    return sorted(found, key=_by_date, reverse=True)


def _by_date(one: HeldVersion) -> tuple[str, str]:
    return (one.info.date if one.info else "", one.version)


def _by_time(entry: Entry) -> tuple[int, str, str]:
    return entry.time, entry.name, entry.checksum
