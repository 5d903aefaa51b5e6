"""`perun clone-profiles`: what somebody new in the team types once, in a clone of the project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from perun.errors import NotPerunRepository, UsageError
from perun.porcelain.init import init
from perun.porcelain.repository import Repository, open_repository
from perun.porcelain.sharing import remotes
from perun.porcelain.sharing.remotes import NamedRemote
from perun.porcelain.trust import Ask
from perun.remote.opening import checked_url


class Joined(NamedTuple):
    """The repository, whether it was made, and the remote that its profiles come from."""

    repo: Repository
    made: bool
    remote: NamedRemote


def join(folder: Path, environ: Mapping[str, str], name: str, url: str, asks: Ask | None = None) -> Joined:
    """Make the clone that `folder` is in a Perun repository with this remote; what is there already stays.

    :raises UsageError: if the URL is none of a remote, or the name is that of another remote.
    :raises NotPerunRepository: if the folder is in no clone.
    """
    remotes.check_name(name)
    checked_url(url)  # before anything is made
    made = False
    try:
        repo = open_repository(folder, environ, asks)
    except NotPerunRepository:
        if not _is_clone(folder):
            raise NotPerunRepository(
                f"{folder} is no clone of a project",
                "clone the project first: git clone URL FOLDER; then call this in FOLDER",
            ) from None
        repo = init(folder, environ, asks=asks).repository
        made = True
    for one in remotes.remotes(repo):
        if one.name == name and one.url != url:
            raise UsageError(
                f"there is a remote {name!r} already, at {one.shown}",
                f"remove it first: perun remote remove {name}; or give another name: --name NAME",
            )
        if one.url == url:
            return Joined(repo, made, one)
    added = remotes.add(repo, name, url)
    return Joined(open_repository(repo.root, environ, asks), made, added)


def _is_clone(folder: Path) -> bool:
    return (folder / ".git").exists()
