"""Checking out versions without touching what is the user's.

A version that the user has checked out, with nothing uncommitted, is measured where it is. Every other one is
measured in a working copy of Perun's own. Only `--in-place` changes the user's working directory.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perun.atomic import process_mark
from perun.errors import PerunError, VersionControlError
from perun.leftovers import is_left_over, is_of_a_run
from perun.plugin.api import WorkingCopy
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.porcelain.run.in_place import InPlace, refuse_after_interruption
from perun.store import tree


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
        if self._is_measured_here(version):
            return here
        if self._placement.in_place:
            self._begin_in_place()
            self._repo.vcs.checkout(version)
            return here
        folder = self._working_copy().switch(version) / inside(self._repo)
        if not folder.is_dir():
            raise VersionControlError(f"version {version[:10]} has no folder {str(inside(self._repo))!r}")
        return folder

    def _is_measured_here(self, version: str) -> bool:
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
    # What cannot be removed is no reason to lose what was measured.
    with tempfile.TemporaryDirectory(prefix=prefix, dir=temporary, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


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
