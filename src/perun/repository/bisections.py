"""What a bisection measured so far: on the disk after each step, so that `--resume` goes on without measuring
it again.

The search depends on nothing but what was measured, so that it is simply done again, and each step that is
known costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perun.core.errors import UsageError
from perun.repository import journal
from perun.repository.journal import JournalFile
from perun.repository.marks import marked
from perun.repository.repository import BISECTIONS, PERUN_FOLDER, Repository


class BisectionJournal:
    """The steps of one bisection; use :func:`begin` or :func:`resume`.

    :ivar plan: what was asked for, with all revisions as checksums.
    """

    def __init__(self, file: JournalFile) -> None:
        self.plan = file.plan
        self.path = file.path
        self._file = file
        self._known: dict[tuple[str, ...], Any] = {}
        for line in file.lines:
            match line:
                case [list(key), result]:
                    self._known[tuple(map(str, key))] = result

    def known(self, *key: str) -> Any:
        """The result of a step; None if it was not done yet."""
        return self._known.get(key)

    def keep(self, result: Any, *key: str) -> None:
        """Write the result of a step, as JSON data; it is on the disk when this returns."""
        self._file.append(list(key), result)
        self._known[key] = result

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found that would be measured again."""
        return all(key[0] in ("skipped", "metric") for key in self._known)

    def end(self) -> None:
        """The bisection has come to its end: nothing is left to resume."""
        self._file.remove()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def __enter__(self) -> BisectionJournal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def folder(repo: Repository) -> Path:
    """Where the journals of bisections are."""
    return repo.root / PERUN_FOLDER / BISECTIONS


def begin(repo: Repository, plan: Mapping[str, Any]) -> BisectionJournal:
    """The journal of a new bisection."""
    return BisectionJournal(journal.create(folder(repo), marked(repo.root, repo.environ, BISECTIONS, plan)))


def resume(repo: Repository) -> BisectionJournal:
    """The journal of the newest bisection that was interrupted.

    :raises UsageError: if there is none.
    """
    for file in journal.unlocked(folder(repo)):
        return BisectionJournal(file)
    raise UsageError("there is no interrupted bisection to resume", "begin one: perun bisect GOOD BAD")


def interrupted(repo: Repository) -> Mapping[str, Any] | None:
    """What the newest bisection asked for that was not finished and that no process works on; None if there
    is none. Its keys are the fields of :class:`~perun.running.bisect.data.BisectRequest`.
    """
    for file in journal.unlocked(folder(repo), to_read=True):
        asked = file.plan.get("asked")
        return asked if isinstance(asked, dict) else {}
    return None


def forget(repo: Repository) -> int:
    """Remove the journals of all bisections that were not finished and that no process works on; how many."""
    count = 0
    for file in journal.unlocked(folder(repo)):
        file.remove()
        file.close()
        count += 1
    return count
