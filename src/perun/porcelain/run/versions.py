"""Which versions are measured, and putting each of them on the disk without touching what is the user's.

A version that the user has checked out, with nothing uncommitted, is measured where it is. Every other one is
measured in a working copy of Perun's own. Only `--in-place` changes the user's working directory; what it put
aside is noted in a journal before the first change, so that whatever kills the run, `perun recover` knows the
way back. A lock that the kernel releases tells a run that was killed from one that is still at work.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perun import atomic
from perun.errors import DamagedStore, LockTimeout, PerunError, VersionControlError
from perun.leftovers import is_alive
from perun.plugin.api import MinorVersion, SavedState, WorkingCopy
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.store import tree
from perun.store.lock import Lock

LOCK = "in-place.lock"
LOCK_PATIENCE = 0.2
"""Seconds to wait for the lock: what only looks whether a run is at work has it for a moment."""
_OF_A_RUN = re.compile(r"(?:worktree|collect)-(\d+)(?:-.*)?", re.ASCII)
"""Names in `.perun/tmp` that a run makes, with the number of its process."""


@dataclass(frozen=True)
class Placement:
    """How versions get on the disk.

    `force_dirty`: measure the current version where it is though there are uncommitted changes.
    `in_place`: check versions out in the user's working directory (manual 13.1.1: save, checkout, restore).
    `in_a_copy`: never touch the user's working directory, not even for the current version.
    """

    force_dirty: bool = False
    in_place: bool = False
    in_a_copy: bool = False


IN_A_COPY = Placement()


@dataclass(frozen=True)
class Journal:
    """What an `--in-place` run has put aside, and the working directory `folder` where it did so."""

    saved: SavedState
    folder: Path


def chosen(repo: Repository, revisions: Sequence[str], crawl_parents: bool) -> list[MinorVersion]:
    """The versions that `revisions` name (HEAD where there is none), the given order, each once.

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


def some_of_history(
    repo: Repository, revisions: Sequence[str], since: str | None, every: int
) -> list[MinorVersion]:
    """The versions that `revisions` name (HEAD where there is none) and their ancestors, newest first.

    :param since: without this version and all that it comes from, as `git log since..revision`.
    :param every: only one of so many, beginning with the newest.
    """
    old = set()
    if since is not None:
        old = {version.checksum for version in repo.vcs.walk_subjects(repo.version(since))}
    versions = [one for one in chosen(repo, revisions, True) if one.checksum not in old]
    return versions[::every]


class Checkouts:
    """Puts one version after the other on the disk; use :func:`checkouts`.

    `usable` is false from the moment on that no other version can be put anywhere.
    """

    def __init__(self, repo: Repository, placement: Placement) -> None:
        self.usable = True
        self._repo = repo
        self._placement = placement
        self._copy: WorkingCopy | None = None
        self._state: SavedState | None = None
        self._lock = contextlib.ExitStack()
        self._head = _head(repo)
        self._dirty: bool | None = None

    def enter(self, version: str) -> Path:
        """The folder that holds `version`, the place of the repository's root in it.

        :raises VersionControlError: where the version cannot be checked out, or has no such folder.
        """
        here = self._repo.working_root
        if self._may_stay(version):
            return here
        if self._placement.in_place:
            self._begin_in_place()
            self._repo.vcs.checkout(version)
            return here
        folder = self._working_copy().switch(version) / _inside(self._repo)
        if not folder.is_dir():
            raise VersionControlError(f"version {version[:10]} has no folder {str(_inside(self._repo))!r}")
        return folder

    def _may_stay(self, version: str) -> bool:
        """Whether the version can be measured where it is."""
        if self._placement.in_a_copy or self._state is not None or version != self._head:
            return False
        return self._placement.force_dirty or not self.dirty

    def leaves_changes_out(self, version: str) -> bool:
        """Whether `version` is the current one, but measured without the uncommitted changes to it."""
        placement = self._placement
        return version == self._head and self.dirty and not (placement.force_dirty or placement.in_place)

    def has_changes(self, version: str) -> bool:
        """Whether `version` is measured with the uncommitted changes to it, if it is measured next."""
        return self._placement.force_dirty and version == self._head and self._state is None and self.dirty

    def put_aside(self) -> bool:
        """After a version was measured in place: keep what that changed in tracked files for the user.

        :return: whether there were any changes.
        """
        if self._state is None or not self._repo.vcs.is_dirty():
            return False
        self._repo.vcs.save_state()
        return True

    @property
    def dirty(self) -> bool:
        """Whether the working directory had uncommitted changes at the start."""
        if self._dirty is None:
            self._dirty = self._repo.vcs.is_dirty()
        return self._dirty

    def _working_copy(self) -> WorkingCopy:
        if self._copy is None:
            self.usable = False
            self._copy = self._repo.vcs.working_copy(_copy_folder(self._repo)).__enter__()
            self.usable = True
        return self._copy

    def _begin_in_place(self) -> None:
        if self._state is not None:
            return
        self.usable = False
        vcs = self._repo.vcs
        self._lock.enter_context(_lock(self._repo))
        # Another run may have begun, and been killed, since this one looked.
        journal = read_journal(self._repo)
        if journal is not None:
            raise _refusal(journal)
        self._state = vcs.prepare_save()
        _write_journal(self._repo, self._state)
        vcs.finish_save(self._state)
        self.usable = True

    def close(self) -> None:
        """Remove the working copy, or give the user's working directory back."""
        with self._lock:
            if self._copy is not None:
                self._copy.__exit__(None, None, None)
                self._copy = None
            if self._state is not None:
                _give_back(self._repo, self._state)
                self._state = None


@contextmanager
def checkouts(repo: Repository, placement: Placement) -> Iterator[Checkouts]:
    """Versions on the disk, one at a time; at the end everything is as it was.

    :raises LockTimeout: where an `--in-place` run of another process has the working directory.
    """
    refuse_after_interruption(repo)
    remove_left_overs(repo)
    places = Checkouts(repo, placement)
    try:
        yield places
    finally:
        places.close()


def interruption(repo: Repository) -> str:
    """What a user should know of an `--in-place` run that was killed, or still runs; empty where neither is.

    Meanwhile HEAD is not where the user left it.
    """
    try:
        journal = read_journal(repo)
        if journal is None:
            return ""
        with _lock(repo):
            return f"{_interrupted(journal)}; perun recover gives it and your uncommitted changes back"
    except LockTimeout:
        return "an in-place run is under way: HEAD and the files are those of the version it measures"
    except PerunError as problem:
        return problem.message


def refuse_after_interruption(repo: Repository) -> None:
    """Raise where an `--in-place` run was killed and its changes are not given back yet.

    :raises LockTimeout: where it is still at work.
    """
    journal = read_journal(repo)
    if journal is not None:
        with _lock(repo):
            raise _refusal(journal)


def recover(repo: Repository) -> str | None:
    """Give back what an interrupted `--in-place` run put aside; the state returned to, None where nothing.

    :raises VersionControlError: where it cannot be done; nothing is lost, and the message says how by hand.
    :raises LockTimeout: where the run is still at work.
    """
    journal = read_journal(repo)
    if journal is None:
        return None
    if journal.folder.is_dir() and not journal.folder.samefile(repo.working_root):
        raise PerunError(_interrupted(journal), f"run perun recover there: cd {journal.folder}")
    repo.require_trust("giving back the working directory")
    with _lock(repo):
        _give_back(repo, journal.saved)
    return journal.saved.state


def remove_left_overs(repo: Repository) -> None:
    """Remove the working copies and scratch folders of runs that were killed."""
    for folder in left_overs(repo):
        remove_left_over(repo, folder)


def left_overs(repo: Repository) -> list[Path]:
    """The working copies and scratch folders of runs that were killed, sorted."""
    temporary = repo.root / PERUN_FOLDER / "tmp"
    found = []
    for name in sorted(tree.listing(temporary)):
        match = _OF_A_RUN.fullmatch(name)
        if match is not None and not is_alive(int(match[1])):
            found.append(temporary / name)
    return found


def remove_left_over(repo: Repository, folder: Path) -> None:
    """Remove one of :func:`left_overs`."""
    import shutil

    if folder.name.startswith("worktree"):
        # Entering removes what a killed run left; a folder that git knows nothing of is only a folder.
        with contextlib.suppress(PerunError), repo.vcs.working_copy(folder):
            pass
    shutil.rmtree(folder, ignore_errors=True)


def read_journal(repo: Repository) -> Journal | None:
    """What an `--in-place` run has noted and not taken back; None in the usual case.

    :raises DamagedStore: where the journal is not readable.
    """
    path = repo.in_place_journal
    data = tree.read(path)
    if data is None:
        return None
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
        noted = json.loads(data)
        if noted.pop("sha1", None) not in (None, _checksum(noted)):
            raise DamagedStore(
                f"{path}: its checksum does not match its content",
                "see git stash list, then delete it",
            )
        saved, *texts = (noted[key] for key in ("saved", "state", "stash", "folder"))
        if isinstance(saved, bool) and all(isinstance(text, str) for text in texts):
            state, stash, folder = texts
            return Journal(SavedState(saved, state, stash), Path(folder))
    raise DamagedStore(f"{path} is not readable", "see git stash list, then delete it")


def _write_journal(repo: Repository, saved: SavedState) -> None:
    noted = {**saved._asdict(), "folder": str(repo.working_root)}
    atomic.write(repo.in_place_journal, json.dumps({**noted, "sha1": _checksum(noted)}).encode())


def _checksum(noted: Mapping[str, Any]) -> str:
    return tree.sha1(json.dumps(noted, sort_keys=True).encode()).hex()


def _give_back(repo: Repository, saved: SavedState) -> None:
    journal = repo.in_place_journal
    try:
        repo.vcs.resume(saved)
    except VersionControlError as problem:
        end = f"then: rm {journal}"
        raise VersionControlError(
            problem.message, f"{problem.hint}; {end}" if problem.hint else end
        ) from None
    journal.unlink(missing_ok=True)


def _refusal(journal: Journal) -> PerunError:
    return PerunError(_interrupted(journal), "give it and your uncommitted changes back with: perun recover")


def _interrupted(journal: Journal) -> str:
    state = journal.saved.state
    return f"an in-place run in {journal.folder} was interrupted; that was at {state} before"


@contextmanager
def _lock(repo: Repository) -> Iterator[None]:
    try:
        with Lock(repo.root / PERUN_FOLDER / LOCK, LOCK_PATIENCE).hold():
            yield
    except LockTimeout as problem:
        raise LockTimeout(f"an in-place run is under way: {problem.message}", "wait until it ends") from None


def _copy_folder(repo: Repository) -> Path:
    # One per process: two runs at once must not pull the folder from under each other.
    return repo.root / PERUN_FOLDER / "tmp" / f"worktree-{os.getpid()}"


def _head(repo: Repository) -> str | None:
    try:
        return repo.vcs.get_minor_head()
    except VersionControlError:
        return None


def _inside(repo: Repository) -> Path:
    """Where the Perun root lies below the wrapped repository's root; `.` in the usual case."""
    try:
        return repo.working_root.resolve().relative_to(repo.vcs.root)
    except ValueError:
        return Path()
