"""Which versions are measured, and putting each of them on the disk without touching what is the user's.

A version that the user has checked out, with nothing uncommitted, is measured where it is. Every other one is
measured in a working copy of Perun's own. Only `--in-place` changes the user's working directory; what it put
aside is noted in a journal before the first change, so that whatever kills the run, `perun recover` knows the
way back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perun import atomic
from perun.errors import DamagedStore, PerunError, VersionControlError
from perun.plugin.api import MinorVersion, SavedState, WorkingCopy
from perun.porcelain.repository import PERUN_FOLDER, Repository

JOURNAL = "in-place.json"


@dataclass(frozen=True)
class Placement:
    """How versions get on the disk.

    `force_dirty`: measure the current version where it is though there are uncommitted changes.
    `in_place`: check versions out in the user's working directory (manual 13.1.1: save, checkout, restore).
    """

    force_dirty: bool = False
    in_place: bool = False


def chosen(repo: Repository, revisions: Sequence[str], crawl_parents: bool) -> list[MinorVersion]:
    """The versions that `revisions` name (HEAD where there is none), the given order, each once.

    :param crawl_parents: also all their ancestors, each version after its children.
    """
    versions: dict[str, MinorVersion] = {}
    for revision in revisions or ["HEAD"]:
        checksum = repo.version(revision)
        if crawl_parents:
            for version in repo.vcs.walk_subjects(checksum):
                versions.setdefault(version.checksum, version)
        else:
            versions.setdefault(checksum, repo.vcs.get_minor_version_info(checksum))
    return list(versions.values())


class Checkouts:
    """Puts one version after the other on the disk; use :func:`checkouts`."""

    def __init__(self, repo: Repository, placement: Placement) -> None:
        self._repo = repo
        self._placement = placement
        self._copy: WorkingCopy | None = None
        self._state: SavedState | None = None
        self._head = _head(repo)
        self._dirty: bool | None = None

    def enter(self, version: str) -> Path:
        """The folder that holds `version`, the place of the repository's root in it.

        :raises VersionControlError: where the version cannot be checked out.
        """
        here = self._repo.working_root
        if self._state is None and version == self._head and (self._placement.force_dirty or not self.dirty):
            return here
        if self._placement.in_place:
            self._save()
            self._repo.vcs.checkout(version)
            return here
        if self._copy is None:
            copy = self._repo.vcs.working_copy(_copy_folder(self._repo))
            self._copy = copy.__enter__()
        folder = self._copy.switch(version)
        return folder / _inside(self._repo)

    @property
    def dirty(self) -> bool:
        """Whether the working directory had uncommitted changes at the start."""
        if self._dirty is None:
            self._dirty = self._repo.vcs.is_dirty()
        return self._dirty

    def _save(self) -> None:
        if self._state is not None:
            return
        vcs = self._repo.vcs
        prepared = vcs.prepare_save()
        _write_journal(self._repo, prepared)
        self._state = prepared
        vcs.finish_save(prepared)

    def close(self) -> None:
        """Remove the working copy, or give the user's working directory back."""
        if self._copy is not None:
            self._copy.__exit__(None, None, None)
            self._copy = None
        if self._state is not None:
            self._repo.vcs.resume(self._state)
            _journal(self._repo).unlink(missing_ok=True)
            self._state = None


@contextmanager
def checkouts(repo: Repository, placement: Placement) -> Iterator[Checkouts]:
    """Versions on the disk, one at a time; at the end everything is as it was."""
    refuse_after_interruption(repo)
    places = Checkouts(repo, placement)
    try:
        yield places
    finally:
        places.close()


def interrupted(repo: Repository) -> SavedState | None:
    """What an `--in-place` run that was killed has put aside; None where no run was killed."""
    path = _journal(repo)
    try:
        journal = json.loads(path.read_bytes())
        return SavedState(bool(journal["saved"]), str(journal["state"]), str(journal["stash"]))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError):
        raise DamagedStore(f"{path} is not readable", "see git stash list, then delete it") from None


def refuse_after_interruption(repo: Repository) -> None:
    """Raise where an `--in-place` run was killed and its changes are not given back yet."""
    journal = interrupted(repo)
    if journal is not None:
        raise PerunError(
            f"an in-place run was interrupted; the working directory was at {journal.state}",
            "give it and your uncommitted changes back with: perun recover",
        )


def recover(repo: Repository) -> str | None:
    """Give back what an interrupted `--in-place` run put aside; the state returned to, None where nothing.

    :raises VersionControlError: where it cannot be done; nothing is lost, and the message says how by hand.
    """
    journal = interrupted(repo)
    if journal is None:
        return None
    repo.vcs.resume(journal)
    _journal(repo).unlink(missing_ok=True)
    return journal.state


def _write_journal(repo: Repository, saved: SavedState) -> None:
    atomic.write(_journal(repo), json.dumps(saved._asdict()).encode())


def _journal(repo: Repository) -> Path:
    return repo.root / PERUN_FOLDER / JOURNAL


def _copy_folder(repo: Repository) -> Path:
    import os

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
