"""The versions between two ends, as one line."""

from __future__ import annotations

from perun.errors import UsageError
from perun.plugin.api import MinorVersion
from perun.porcelain.repository import Repository
from perun.porcelain.walking import first_parents

_SHOWN = 7


def path(repo: Repository, good: str, bad: str) -> list[MinorVersion]:
    """The versions from the good end to the bad one, both included, the oldest first.

    From each version it goes to its first parent; where that does not come from the good end, to the first
    one that does.

    :raises UsageError: where the bad end does not come from the good one.
    """
    if good == bad:
        raise UsageError(
            f"both ends are {good[:_SHOWN]}", "name a version before the change, and one with it"
        )
    parents: dict[str, tuple[str, ...]] = {}
    for version in repo.vcs.walk_subjects(bad, ordered=True):
        if version.checksum == good:
            break
        parents[version.checksum] = version.parents
    else:
        raise _unrelated(repo, good, bad)
    comes_from = {good}
    for checksum in reversed(parents):  # parents before children
        if any(one in comes_from for one in parents[checksum]):
            comes_from.add(checksum)
    line = [bad]
    while line[-1] != good:
        line.append(next(one for one in parents[line[-1]] if one in comes_from))
    return [repo.vcs.get_minor_version_info(checksum) for checksum in reversed(line)]


def merged(repo: Repository, parent: str, tip: str) -> list[MinorVersion]:
    """The versions that a merge brought along first parents of the merged `tip`, the oldest first; the first
    one is that from which they branched off, which `parent` has, too. Empty if they share no history."""
    known = {version.checksum for version in repo.vcs.walk_subjects(parent)}
    line: list[MinorVersion] = []
    for version in first_parents(repo, tip):
        line.append(version)
        if version.checksum in known:
            return line[::-1]
    return []


def _unrelated(repo: Repository, good: str, bad: str) -> UsageError:
    base = repo.vcs.merge_base(good, bad)
    ends = f"{bad[:_SHOWN]} does not come from {good[:_SHOWN]}"
    if base == bad:
        return UsageError(
            f"{ends}, but is older: the ends are swapped",
            f"name the older version first: perun bisect {bad[:_SHOWN]} {good[:_SHOWN]}",
        )
    if base is None:
        return UsageError(
            f"{ends}: they have no common history",
            repo.vcs.missing_history() or "name a version before the change that the bad one comes from",
        )
    return UsageError(
        f"{ends}: they are on two branches",
        f"they parted at {base[:_SHOWN]}; if that is good: perun bisect {base[:_SHOWN]} {bad[:_SHOWN]}",
    )
