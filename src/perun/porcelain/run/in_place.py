"""`--in-place` runs: what they change in the user's working directory, and how everything is restored.

The run writes what it saved to a journal before its first change, so that `perun recover` can restore it
whatever kills the run. A lock that the kernel releases tells a killed run from one that still works.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perun import atomic
from perun.errors import DamagedStore, LockTimeout, PerunError, VersionControlError
from perun.plugin.api import SavedState
from perun.porcelain.marks import FIELD, marked
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.store import tree
from perun.store.lock import Lock, is_held

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
