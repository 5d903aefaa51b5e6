"""Sharing profiles in a git repository: by how much it grows, and what its refs cost other users of it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from harness import Contestant, once
from perun.repository.repository import open_repository
from perun.sharing import transfer
from perun.store.remote import cleaning
from perun.store.remote.git import GitRemote
from perun.store.remote.reading import RemoteReader
from report import Count, Measured, Place, Row
from sharing_history import commits, profiles

PUSHES = 100
EACH = 100
BRANCHES = 50
"""Branches that the repository has, and half as many tags again."""
CALLS = 20
"""Calls of git that are measured together."""
LIMIT = 2.0
FORMAT = 64
"""Bytes that git adds to an object: its kind and size, and what zlib adds to what is compressed already."""


def git_repository(place: Place) -> Iterator[Row | Count]:
    """10,000 profiles in 100 pushes: how a repository grows, and what `git ls-remote`, `git fetch` take."""
    ours, server = place.folder / "git", place.folder / "git-server.git"
    versions = commits(ours, PUSHES)
    _git(place.folder, "init", "--quiet", "--bare", str(server))
    _git(ours, "remote", "add", "origin", f"file://{server}")
    for number in range(BRANCHES):
        _git(ours, "branch", f"branch-{number}")
        _git(ours, "tag", f"v1.{number}")
    _git(ours, "push", "--quiet", "origin", "--all")
    _git(ours, "push", "--quiet", "origin", "--tags")
    before = _calls(place, ours)
    size = _size(server)
    repo = open_repository(ours, os.environ)
    remote = GitRemote("git:origin", ours, os.environ)
    for number, version in enumerate(versions):
        profiles(ours, [version], EACH, seed=number)
        transfer.push(repo, remote, [version])
    pieces = [one for prefix in ("packs/", "registers/") for one in remote.list(prefix)]
    most = sum(one.size + FORMAT for one in pieces)
    grown = _size(server) - size
    yield Count(f"bytes that {PUSHES} pushes of {EACH} profiles to git add", grown, most, most=most)
    yield from _rows(f"after {PUSHES} pushes", _calls(place, ours), before)
    reader = RemoteReader(remote)
    reader.refresh()
    cleaning.clean(reader, grace=0, now=time.time())
    yield Count("pieces that are left after perun gc --remote", len(_refs(server)) // 2, len(pieces), most=10)
    yield from _rows("after perun gc --remote", _calls(place, ours), before, LIMIT)


def _rows(
    when: str, now: dict[str, Measured], before: dict[str, Measured], limit: float | None = None
) -> Iterator[Row]:
    for verb, cpu in now.items():
        yield Row(f"git {verb} {when}, CPU of {CALLS}", cpu, before[verb], "before", limit, is_rival=False)


def _calls(place: Place, folder: Path) -> dict[str, Measured]:
    """The CPU time of calls of git by a user who has no profiles."""
    found = {}
    for verb in ("ls-remote", "fetch"):
        loop = f"for i in $(seq {CALLS}); do git {verb} --quiet origin >/dev/null || exit 1; done"
        samples = [once(Contestant(["sh", "-c", loop], folder)).cpu for _ in range(min(place.rounds, 5))]
        found[verb] = Measured(samples)
    return found


def _refs(server: Path) -> list[str]:
    return _git(server, "for-each-ref", "refs/perun").splitlines()


def _size(server: Path) -> int:
    """Bytes of the objects of the repository."""
    return sum(path.stat().st_size for path in (server / "objects").rglob("*") if path.is_file())


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True, text=True)
    return done.stdout
