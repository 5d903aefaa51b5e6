"""Measuring commits in the background for a hook: a queue of versions, and one worker process.

The queue is a folder with a file for each version, so that adding one needs no lock. The worker holds a lock,
which the kernel releases at its end; a second worker that finds it taken ends at once. A stranger may have
filled the folder: what is not a file with the mark of the user (:mod:`perun.repository.user`) is left alone.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from perun.core import atomic
from perun.core.errors import DamagedStore, LockTimeout, PerunError
from perun.core.process import programs
from perun.core.regular import IrregularFile, open_for_writing, open_regular
from perun.repository import marks
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.store import tree
from perun.store.lock import Lock, is_held

FOLDER: Final = "hooks"
"""In `.perun`: the queue, the lock, and what was found last."""
LOG_SUFFIX: Final = "-hook.log"
_QUEUE: Final = "queue"
_MARK_BYTES: Final = 64
_LOCK_TIMEOUT: Final = 0.2
"""Seconds that a worker waits for the lock of another one."""
_START_TIMEOUT: Final = 10.0
"""Seconds after which a queued version without a worker counts as abandoned."""
_POLL_INTERVAL: Final = 0.1
"""Seconds between two looks at the queue."""


class BackgroundState(NamedTuple):
    """The state of the background: whether a worker runs, the queued versions, and the newest log if any."""

    working: bool
    waiting: list[str]
    log: Path | None


def start(repo: Repository, version: str, command: Sequence[str]) -> Path:
    """Queue the version and start a worker; returns the path of the log.

    :param command: the command that starts Perun.
    :raises DamagedStore: if a link or the like is in the place of its file in the queue.
    """
    _enqueue(_queue(repo) / version, marks.mark(repo.root, repo.environ, _QUEUE, version))
    process = programs.Program(
        [*command, "hooks", "work"],
        cwd=repo.working_root,
        environ=repo.environ,
        stdout=programs.DEVNULL,
        stderr=programs.DEVNULL,
        start_new_session=True,  # it survives the end of the terminal
        outlives=True,
    )
    process.returncode = 0  # this process does not wait for it; without this Python warns
    return log_of(repo, version)


def _enqueue(path: Path, mark: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open_for_writing(path) as file:
            file.write(mark.encode())
            file.flush()
            os.utime(file.fileno())  # the queue is in the order of these times, also of what is there already
    except IrregularFile as problem:
        raise DamagedStore(f"cannot queue a commit: {path}: {problem.strerror}", "remove it") from None


def work(repo: Repository, measure: Callable[[str], str]) -> None:
    """Measure the queued versions, later ones included, unless another worker does so.

    :param measure: measures a version; returns the result in one line, empty if all is well.
    """
    while waiting(repo):
        try:
            with _lock(repo).hold():
                for version in iter(lambda: next(iter(waiting(repo)), ""), ""):
                    try:
                        news = measure(version)
                    except (PerunError, OSError) as problem:  # the others are measured nevertheless
                        news = f"could not be measured: {problem}"
                    (_queue(repo) / version).unlink(missing_ok=True)
                    if news:
                        _add_news(repo, f"{version[:10]} {news}")
        except LockTimeout:
            return


def state(repo: Repository) -> BackgroundState:
    """The current state."""
    logs = sorted(_logs(repo).glob(f"*{LOG_SUFFIX}"), key=lambda path: path.lstat().st_mtime_ns)
    return BackgroundState(_is_working(repo), waiting(repo), logs[-1] if logs else None)


def wait(repo: Repository) -> None:
    """Wait until the queue is empty, except for versions that a killed worker abandoned."""
    since: float | None = None
    while True:
        now = time.monotonic()
        if _is_working(repo):
            since = None
        elif not waiting(repo) or (since is not None and now - since > _START_TIMEOUT):
            return
        else:
            since = now if since is None else since
        time.sleep(_POLL_INTERVAL)


def waiting(repo: Repository) -> list[str]:
    """The queued versions, the oldest first; the one that is being measured is among them."""
    queue = _queue(repo)
    found = []
    for name in tree.listing(queue):
        # Gone meanwhile, a link, larger than a mark: nothing that was queued here.
        with contextlib.suppress(OSError), open_regular(queue / name, _MARK_BYTES) as file:
            mark = file.read(_MARK_BYTES).decode("ascii", "replace")
            if tree.is_minor_version(name) and _is_own(repo, name, mark):
                found.append((os.fstat(file.fileno()).st_mtime_ns, name))
    return [name for _, name in sorted(found)]


def _is_own(repo: Repository, version: str, mark: str) -> bool:
    """Whether this user has queued the version; where he can keep no key, trust in the whole must do."""
    if mark:
        return marks.holds(repo.root, repo.environ, _QUEUE, version, mark)
    return repo.trust_state.because in ("environment", "plugins.trusted")


def news(repo: Repository) -> list[str]:
    """The results since the last call, one line for each version; removes them."""
    path = _news(repo)
    data = tree.read(path)
    if not data:
        return []
    path.unlink(missing_ok=True)
    return data.decode("utf-8", "replace").splitlines()


def log_of(repo: Repository, version: str) -> Path:
    """Where measuring this version is logged."""
    return _logs(repo) / f"{version}{LOG_SUFFIX}"


def _add_news(repo: Repository, line: str) -> None:
    before = tree.read(_news(repo)) or b""
    atomic.write(_news(repo), before + line.encode("utf-8", "replace") + b"\n")


def _is_working(repo: Repository) -> bool:
    return is_held(_lock_file(repo))


def _lock(repo: Repository) -> Lock:
    return Lock(_lock_file(repo), _LOCK_TIMEOUT)


def _lock_file(repo: Repository) -> Path:
    return _folder(repo) / "lock"


def _folder(repo: Repository) -> Path:
    return repo.root / PERUN_FOLDER / FOLDER


def _queue(repo: Repository) -> Path:
    return _folder(repo) / _QUEUE


def _news(repo: Repository) -> Path:
    return _folder(repo) / "news"


def _logs(repo: Repository) -> Path:
    return repo.root / PERUN_FOLDER / "logs"
