"""`perun rm`: unlink registered profiles, delete pending ones (manual 3.2.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perun.errors import PerunError
from perun.porcelain import lookup
from perun.porcelain.repository import Repository
from perun.store.index import IndexEntry
from perun.store.linking import unlink


@dataclass(frozen=True)
class Removed:
    """A profile that is not there any more: from the index of `minor_version`, or (None) from the pending."""

    name: str
    minor_version: str | None


def rm(repo: Repository, specs: Sequence[str], *, minor: str | None = None) -> list[Removed]:
    """Unlink the profiles that `specs` name from the index of `minor` (HEAD if None), or delete them
    if they are pending. The objects of unlinked profiles are kept.

    Tags are resolved before the first removal, so `rm 0@i 1@i` takes the two that `status` showed. Typed
    again, positions name the next ones, and stable ids none.

    :raises ProfileNotFound: if one of them is not there; nothing is removed then.
    """
    with repo.store.lock():
        found = [one for spec in specs for one in lookup.find_removable(repo, spec, minor)]
        unique = list({(one.minor_version, one.info.source, one.info.time): one for one in found}.values())
        by_version: dict[str, list[IndexEntry]] = {}
        for one in unique:
            if one.minor_version is not None:
                entry = IndexEntry(one.info.time, one.info.checksum, one.info.source)
                by_version.setdefault(one.minor_version, []).append(entry)
        done: list[str] = []
        try:
            for minor_version, entries in by_version.items():
                unlink(repo.store, minor_version, entries)
                where = minor_version[:10]
                done += (f"{entry.path} was removed from {where} before that" for entry in entries)
            repo.store.pending.remove([one.path for one in unique if one.minor_version is None])
        except (PerunError, OSError) as problem:
            for one_done in done:
                problem.add_note(one_done)
            raise
    return [Removed(one.info.source, one.minor_version) for one in unique]
