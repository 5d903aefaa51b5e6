"""Which versions are measured."""

from __future__ import annotations

from collections.abc import Sequence

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
