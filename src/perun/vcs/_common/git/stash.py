"""Entries of `git stash`: commits that hold uncommitted changes, and the list that keeps them alive.

An entry is a commit `W`, the tracked files as they are in the folder; its parents are the commit it was made
on and a commit `I` of the index.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from perun.errors import VersionControlError
from perun.process.git import GitCommand

_IDENTITY: Final = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "Perun"), ("EMAIL", "perun@localhost"))
}
"""Author of the entries: git makes none if the user has not told a name yet."""


class Contents(NamedTuple):
    """Of an entry: the commit it was made on, and the trees of the folder and of the index."""

    base: str
    folder: str
    staged: str


class Entry(NamedTuple):
    """A line of `git stash list`."""

    checksum: str
    label: str


def create(git: GitCommand) -> str:
    """Checksum of an entry, in no list yet, of what is uncommitted now; empty if nothing is.

    :raises VersionControlError: if there are conflicts, or files of `git add -N`.
    """
    answer = git.attempt("stash", "create", env=_IDENTITY, shield=True)
    if answer.code and not answer.stderr:
        # So it fails if only times of files differ, and if another git holds the index: ask which.
        refreshed = git.attempt("update-index", "--refresh", shield=True)
        if refreshed.code > 1:
            raise git.failure("update-index", refreshed)
        # Where there was nothing to refresh, git has not looked for the lock of another one.
        lock = git.folder / git.ask("rev-parse", "--git-path", "index.lock")
        if lock.exists():
            raise VersionControlError(
                f"git cannot put aside the uncommitted changes in {git.folder}: {lock} is there",
                "wait for the git that holds it; if none is running, remove the file",
            )
        answer = git.attempt("stash", "create", env=_IDENTITY, shield=True)
    if answer.code:
        reason = answer.stderr or "without a message"
        raise VersionControlError(
            f"git cannot put aside the uncommitted changes in {git.folder}: {reason}",
            "commit them (files of `git add -N` too), or measure without --in-place",
        )
    return answer.text


def store(git: GitCommand, checksum: str, label: str) -> None:
    """Put what :func:`create` made into the list."""
    git.alter("stash", "store", "--message", label, checksum, env=_IDENTITY)


def contents(git: GitCommand, checksum: str) -> Contents:
    """What the entry holds."""
    names = (f"{checksum}^1", f"{checksum}^{{tree}}", f"{checksum}^2^{{tree}}")
    return Contents(*git.ask("rev-parse", *names).split())


def tree_of(git: GitCommand, commit: str) -> str:
    """Checksum of the tree of a commit."""
    return git.ask("rev-parse", f"{commit}^{{tree}}")


def entries(git: GitCommand) -> list[Entry]:
    """The list, the newest first: an entry's place in it is its number."""
    listed = git.ask("stash", "list", "-z", "--format=%H%n%gs").split("\0")
    pairs = (line.partition("\n") for line in listed if line)
    return [Entry(checksum, label) for checksum, _, label in pairs]


def drop(git: GitCommand, checksum: str) -> None:
    """Take the entry out of the list, if it is there."""
    for number, entry in enumerate(entries(git)):
        if entry.checksum == checksum:
            said = git.alter("stash", "drop", f"stash@{{{number}}}")
            dropped = said.rpartition("(")[2].rstrip(")")
            if dropped != checksum:  # someone made another entry meanwhile, and the numbers have moved
                store(git, dropped, entry.label)
            return
