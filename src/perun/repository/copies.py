"""Checking out versions without touching what is the user's.

A version that the user has checked out, with nothing uncommitted, is measured where it is. Every other one is
measured in a working copy of Perun's own. Only `--in-place` changes the user's working directory.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perun.core import atomic
from perun.core.atomic import process_mark
from perun.core.errors import DamagedStore, LockTimeout, PerunError, VersionControlError
from perun.core.leftovers import is_left_over, is_of_a_run, remove_folder
from perun.plugin.api import MinorVersion, SavedState, Vcs, WorkingCopy
from perun.repository.marks import FIELD, marked
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.store import tree
from perun.store.lock import Lock, is_held

# `--in-place` runs: what they change in the user's working directory, and how everything is restored.
#
# The run writes what it saved to a journal before its first change, so that `perun recover` can restore it
# whatever kills the run. A lock that the kernel releases tells a killed run from one that still works.

LOCK = "in-place.lock"
LOCK_TIMEOUT = 0.2
"""Seconds to wait for the lock: a command that only asks whether a run works holds it for a moment."""


@dataclass(frozen=True)
class InPlaceJournal:
    """What an `--in-place` run saved before its first change, and the working directory that it changes."""

    saved: SavedState
    folder: Path


class InPlace:
    """The working directory of the user while an `--in-place` run has it."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._lock = contextlib.ExitStack()
        self._state: SavedState | None = None

    @property
    def begun(self) -> bool:
        """Whether the uncommitted changes of the user are saved, and HEAD may move."""
        return self._state is not None

    def begin(self) -> None:
        """Save the uncommitted changes of the user.

        :raises LockTimeout: if another run works in place.
        """
        vcs = self._repo.vcs
        self._lock.enter_context(_lock(self._repo))
        # Another run may have begun, and been killed, since this one looked.
        journal = read_journal(self._repo)
        if journal is not None:
            raise _refusal(journal)
        self._state = vcs.prepare_save()
        _write_journal(self._repo, self._state)
        vcs.finish_save(self._state)

    def end(self) -> None:
        """Restore what the user had, and release the working directory."""
        with self._lock:
            if self._state is not None:
                _restore(self._repo, self._state)
                self._state = None


def interruption(repo: Repository) -> str:
    """The warning about an `--in-place` run that was killed or still runs; empty if there is neither.

    Meanwhile HEAD is not where the user left it.
    """
    try:
        journal = read_journal(repo)
        if journal is None:
            return ""
        if is_held(_lock_file(repo)):
            return "an in-place run is active: HEAD and the files are those of the version it measures"
        return f"{_interrupted(journal)}; perun recover restores it and your uncommitted changes"
    except PerunError as problem:
        return problem.message


def refuse_after_interruption(repo: Repository) -> None:
    """Raise where an `--in-place` run was killed and the working directory is not restored yet.

    :raises LockTimeout: if it is still at work.
    """
    journal = read_journal(repo)
    if journal is not None:
        with _lock(repo):
            raise _refusal(journal)


def recover(repo: Repository) -> str | None:
    """Restore what an interrupted `--in-place` run saved; the state returned to, None without one.

    :raises VersionControlError: if it cannot be done; nothing is lost, and the message says how by hand.
    :raises LockTimeout: if the run is still at work.
    """
    journal = read_journal(repo)
    if journal is None:
        return None
    if journal.folder.is_dir() and not journal.folder.samefile(repo.working_root):
        raise PerunError(_interrupted(journal), f"run perun recover there: cd {journal.folder}")
    repo.require_trust("restoring the working directory")
    with _lock(repo):
        _restore(repo, journal.saved)
    return journal.saved.state


def read_journal(repo: Repository) -> InPlaceJournal | None:
    """The journal of an `--in-place` run that has not ended; None in the usual case.

    :raises DamagedStore: if the journal is not readable.
    """
    path = repo.in_place_journal
    data = tree.read(path)
    if data is None:
        return None
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
        noted = json.loads(data)
        noted.pop(FIELD, None)
        if noted.pop("sha1", None) not in (None, _checksum(noted)):
            raise DamagedStore(
                f"{path}: its checksum does not match its content",
                "see git stash list, then delete it",
            )
        saved, *texts = (noted[key] for key in ("saved", "state", "stash", "folder"))
        if isinstance(saved, bool) and all(isinstance(text, str) for text in texts):
            state, stash, folder = texts
            return InPlaceJournal(SavedState(saved, state, stash), Path(folder))
    raise DamagedStore(f"{path} is not readable", "see git stash list, then delete it")


def _write_journal(repo: Repository, saved: SavedState) -> None:
    noted = {**saved._asdict(), "folder": str(repo.working_root)}
    journal = {**noted, "sha1": _checksum(noted)}
    path = repo.in_place_journal
    atomic.write(path, json.dumps(marked(repo.root, repo.environ, path.name, journal)).encode())


def _checksum(noted: Mapping[str, Any]) -> str:
    return tree.sha1(json.dumps(noted, sort_keys=True).encode()).hex()


def _restore(repo: Repository, saved: SavedState) -> None:
    journal = repo.in_place_journal
    try:
        repo.vcs.resume(saved)
    except VersionControlError as problem:
        end = f"then: rm {journal}"
        raise VersionControlError(
            problem.message, f"{problem.hint}; {end}" if problem.hint else end
        ) from None
    journal.unlink(missing_ok=True)


def _refusal(journal: InPlaceJournal) -> PerunError:
    return PerunError(_interrupted(journal), "restore it and your uncommitted changes with: perun recover")


def _interrupted(journal: InPlaceJournal) -> str:
    state = journal.saved.state
    return f"an in-place run in {journal.folder} was interrupted; the folder was at {state} before"


@contextmanager
def _lock(repo: Repository) -> Iterator[None]:
    try:
        with Lock(_lock_file(repo), LOCK_TIMEOUT).hold():
            yield
    except LockTimeout as problem:
        raise LockTimeout(f"an in-place run is active: {problem.message}", "wait until it ends") from None


def _lock_file(repo: Repository) -> Path:
    return repo.root / PERUN_FOLDER / LOCK


@dataclass(frozen=True)
class Placement:
    """Where versions are checked out.

    `force_dirty`: measure the current version where it is though there are uncommitted changes.
    `in_place`: check versions out in the user's working directory (manual 13.1.1: save, checkout, restore).
    `in_a_copy`: never touch the user's working directory, not even for the current version.
    """

    force_dirty: bool = False
    in_place: bool = False
    in_a_copy: bool = False


IN_A_COPY = Placement()


class Checkouts:
    """Checks out one version after the other; use :func:`checkouts`.

    :ivar usable: false once no further version can be checked out anywhere.
    """

    def __init__(self, repo: Repository, placement: Placement) -> None:
        self.usable = True
        self._repo = repo
        self._placement = placement
        self._copy: WorkingCopy | None = None
        self._in_place = InPlace(repo)
        self._head = _head(repo)
        self._dirty: bool | None = None

    def enter(self, version: str) -> Path:
        """The folder that holds `version`, the place of the repository's root in it.

        :raises VersionControlError: if the version cannot be checked out, or has no such folder.
        """
        here = self._repo.working_root
        if self.is_measured_here(version):
            return here
        if self._placement.in_place:
            self._begin_in_place()
            self._repo.vcs.checkout(version)
            return here
        folder = self._working_copy().switch(version) / inside(self._repo)
        if not folder.is_dir():
            raise VersionControlError(f"version {version[:10]} has no folder {str(inside(self._repo))!r}")
        return folder

    def is_measured_here(self, version: str) -> bool:
        """Whether the version is measured in the folder where the user has checked it out."""
        if self._placement.in_a_copy or self._in_place.begun or version != self._head:
            return False
        return self._placement.force_dirty or not self.dirty

    def omits_changes(self, version: str) -> bool:
        """Whether `version` is the current one, but measured without the uncommitted changes to it."""
        placement = self._placement
        return version == self._head and self.dirty and not (placement.force_dirty or placement.in_place)

    def includes_changes(self, version: str) -> bool:
        """Whether `version` is measured with the uncommitted changes to it, if it is measured next."""
        forced = self._placement.force_dirty and not self._in_place.begun
        return forced and version == self._head and self.dirty

    def save_changes(self) -> bool:
        """After a version was measured in place: keep what that changed in tracked files for the user.

        :return: whether there were any changes.
        """
        if not self._in_place.begun or not self._repo.vcs.is_dirty():
            return False
        self._repo.vcs.save_state()
        return True

    @property
    def in_place(self) -> bool:
        """Whether versions are checked out in the user's working directory."""
        return self._placement.in_place

    @property
    def dirty(self) -> bool:
        """Whether the working directory had uncommitted changes at the start."""
        if self._dirty is None:
            self._dirty = self._repo.vcs.is_dirty()
        return self._dirty

    def _working_copy(self) -> WorkingCopy:
        if self._copy is None:
            self.usable = False
            self._copy = self._repo.vcs.working_copy(copy_folder(self._repo)).__enter__()
            self.usable = True
        return self._copy

    def _begin_in_place(self) -> None:
        if not self._in_place.begun:
            self.usable = False
            self._in_place.begin()
            self.usable = True

    def close(self) -> None:
        """Remove the working copy, or restore the user's working directory."""
        if self._copy is not None:
            self._copy.__exit__(None, None, None)
            self._copy = None
        self._in_place.end()


@contextmanager
def checkouts(repo: Repository, placement: Placement) -> Iterator[Checkouts]:
    """Checked-out versions, one at a time; at the end everything is as it was.

    :raises LockTimeout: if an `--in-place` run of another process has the working directory.
    """
    refuse_after_interruption(repo)
    remove_leftovers(repo)
    places = Checkouts(repo, placement)
    try:
        yield places
    finally:
        places.close()


def remove_leftovers(repo: Repository) -> None:
    """Remove the working copies and scratch folders of runs that were killed."""
    for folder in leftovers(repo):
        remove_leftover(repo, folder)


def leftovers(repo: Repository) -> list[Path]:
    """The working copies and scratch folders of runs that were killed, sorted."""
    temporary = _temporary(repo)
    names = sorted(filter(is_of_a_run, tree.listing(temporary)))
    return [temporary / name for name in names if is_left_over(temporary / name)]


def remove_leftover(repo: Repository, folder: Path) -> None:
    """Remove one of :func:`leftovers`."""
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    if folder.name.startswith("worktree"):
        # Entering removes what a killed run left; a folder that git knows nothing of is only a folder.
        with contextlib.suppress(PerunError), repo.vcs.working_copy(folder):
            pass
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def scratch_folder(repo: Repository) -> Iterator[Path]:
    """A new folder for temporary files of a run; where that is killed, the next one removes it."""
    temporary = _temporary(repo)
    temporary.mkdir(exist_ok=True)
    prefix = f"collect-{process_mark()}-"
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=temporary))
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):  # no reason to lose what was measured
            remove_folder(folder)


def copy_folder(repo: Repository, name: str = "") -> Path:
    """Where a working copy of that name is made.

    It is of this process alone: two runs at once must not pull the folder from under each other.
    """
    return _temporary(repo) / "-".join(filter(None, ("worktree", process_mark(), name)))


def _temporary(repo: Repository) -> Path:
    return repo.root / PERUN_FOLDER / "tmp"


def _head(repo: Repository) -> str | None:
    try:
        return repo.vcs.get_minor_head()
    except VersionControlError:
        return None


def inside(repo: Repository) -> Path:
    """The path of the Perun root, relative to the wrapped repository's root; `.` in the usual case."""
    try:
        return repo.working_root.resolve().relative_to(repo.vcs.root)
    except ValueError:
        return Path()


# `perun tag`: make a version of the folder, or go back to one, if the system leaves that to Perun.


def tag(repo: Repository, name: str, message: str = "") -> MinorVersion:
    """Make a snapshot of the folder as it is, named `name`; profiles of it are stored under its checksum.

    :raises VersionControlError: if the system makes its versions otherwise (git), or refuses.
    """
    refuse_after_interruption(repo)
    return repo.vcs.get_minor_version_info(repo.vcs.snapshot(name, message))


def restore(repo: Repository, name: str) -> tuple[MinorVersion, bool]:
    """Make the folder that of the version `name`.

    :return: the version, and whether files that it shares with the one before have changes, which were left.

    :raises VersionControlError: if files that no version holds would be overwritten; nothing has changed.
    """
    vcs = repo.vcs
    if type(vcs).snapshot is Vcs.snapshot:
        vcs.snapshot(name)  # tells that this is not the way
    refuse_after_interruption(repo)
    checksum = vcs.massage_parameter(name)
    vcs.checkout(checksum)
    return vcs.get_minor_version_info(checksum), vcs.is_dirty()
