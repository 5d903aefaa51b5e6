"""Which versions are measured."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from perun.plugin.api import MinorVersion
from perun.porcelain.repository import Repository


def choose(repo: Repository, revisions: Sequence[str], crawl_parents: bool) -> list[MinorVersion]:
    """The versions that `revisions` name (HEAD if there is none), in the given order, each once.

    :param crawl_parents: also all their ancestors, each version after its children.
    """
    versions: dict[str, MinorVersion] = {}
    for revision in revisions or ["HEAD"]:
        checksum = repo.version(revision)
        if crawl_parents:
            for version in repo.vcs.walk_subjects(checksum, ordered=True):
                versions.setdefault(version.checksum, version)
        else:
            versions.setdefault(checksum, repo.vcs.get_minor_version_info(checksum))
    return list(versions.values())


def choose_ancestors(
    repo: Repository, revisions: Sequence[str], since: str | None, every: int
) -> list[MinorVersion]:
    """The versions that `revisions` name (HEAD if there is none) and their ancestors, newest first.

    :param since: without this version and its ancestors, as `git log since..revision`.
    :param every: take one version of `every`, beginning with the newest.
    """
    old = set()
    if since is not None:
        old = {version.checksum for version in repo.vcs.walk_subjects(repo.version(since))}
    versions = [one for one in choose(repo, revisions, True) if one.checksum not in old]
    return versions[::every]


def parents_among(repo: Repository, versions: Sequence[MinorVersion]) -> dict[str, tuple[str, ...]]:
    """Of each of the versions (by checksum) the nearest of them that it comes from, as parents in a drawing.

    Empty where they cannot be drawn as a history: one of them is there twice, or before its children.
    """
    places = {version.checksum: place for place, version in enumerate(versions)}
    if len(places) < len(versions):
        return {}
    known = {version.checksum: version.parents for version in versions}
    if any(parent not in places for parents in known.values() for parent in parents):
        known = _nearest(repo, versions, places)
    in_order = all(
        places[parent] > places[child] for child, parents in known.items() for parent in parents
    )
    return known if in_order else {}


def _nearest(
    repo: Repository, versions: Sequence[MinorVersion], chosen: Container[str]
) -> dict[str, tuple[str, ...]]:
    """The nearest chosen ancestors of each version; the history between them is walked."""
    history: dict[str, MinorVersion] = {}
    for version in versions:
        if version.checksum not in history:
            walked = repo.vcs.walk_subjects(version.checksum, ordered=True)
            history = {one.checksum: one for one in walked} | history
    nearest: dict[str, tuple[str, ...]] = {}
    for checksum in _parents_first(history):
        found: dict[str, None] = {}
        for parent in history[checksum].parents:
            found.update(dict.fromkeys((parent,) if parent in chosen else nearest.get(parent, ())))
        nearest[checksum] = tuple(found)
    return {version.checksum: nearest[version.checksum] for version in versions}


def _parents_first(history: Mapping[str, MinorVersion]) -> Iterator[str]:
    """The versions, each after all its parents."""
    done: set[str] = set()
    for start in history:
        path = [start]
        while path:
            checksum = path[-1]
            waiting = [one for one in history[checksum].parents if one in history and one not in done]
            if waiting and checksum not in done:
                path.append(waiting[0])
                continue
            path.pop()
            if checksum not in done:
                done.add(checksum)
                yield checksum
