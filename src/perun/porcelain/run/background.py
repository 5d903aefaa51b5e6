"""Measuring commits in the background, as a hook asks for: a queue of versions, and one process that works.

The queue is a folder with an empty file for each version, so that asking needs no lock. A lock that the
kernel releases tells whether somebody works; whoever finds it taken leaves the version to the one who has it.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from perun import atomic
from perun.errors import LockTimeout
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.store import tree
from perun.store.lock import Lock

FOLDER: Final = "hooks"
"""In `.perun`: the queue, the lock, and what was found last."""
LOG_SUFFIX: Final = "-hook.log"
_PATIENCE: Final = 0.2
_STARTING: Final = 10.0
"""Seconds after which a version in the queue that nobody works on counts as left behind."""
_PAUSE: Final = 0.1


class State(NamedTuple):
    """What is going on: whether somebody is at work, the versions that wait, and the newest log if any."""

    working: bool
    waiting: list[str]
    log: Path | None


def start(repo: Repository, version: str, command: Sequence[str]) -> Path:
    """Have the version measured by a process of its own; where it will write what it does.

    :param command: how Perun is called.
    """
    queue = _queue(repo)
    queue.mkdir(parents=True, exist_ok=True)
    (queue / version).touch()
    process = subprocess.Popen(
        [*command, "hooks", "work"],
        cwd=repo.working_root,
        env=dict(repo.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # the end of the terminal is not its end
    )
    process.returncode = 0  # nobody here waits for it, and Python shall not warn of that
    return log_of(repo, version)


def work(repo: Repository, measure: Callable[[str], str]) -> None:
    """Measure the versions of the queue, those that come meanwhile too, unless another process does so.

    :param measure: measures a version, and says in one line what came of it.
    """
    while waiting(repo):
        try:
            with _lock(repo).hold():
                for version in iter(lambda: next(iter(waiting(repo)), ""), ""):
                    news = measure(version)
                    (_queue(repo) / version).unlink(missing_ok=True)
                    if news:
                        _tell(repo, f"{version[:10]} {news}")
        except LockTimeout:
            return


def state(repo: Repository) -> State:
    """What is going on now."""
    logs = sorted(_logs(repo).glob(f"*{LOG_SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
    return State(_is_working(repo), waiting(repo), logs[-1] if logs else None)


def wait(repo: Repository) -> None:
    """Wait until nobody works and nothing waits, but for what a process that was killed left behind."""
    since: float | None = None
    while True:
        now = time.monotonic()
        if _is_working(repo):
            since = None
        elif not waiting(repo) or (since is not None and now - since > _STARTING):
            return
        else:
            since = now if since is None else since
        time.sleep(_PAUSE)


def waiting(repo: Repository) -> list[str]:
    """The versions of the queue, the one that waits longest first; the one at work is among them."""
    queue = _queue(repo)
    found = []
    for name in tree.listing(queue):
        with contextlib.suppress(FileNotFoundError):
            found.append(((queue / name).stat().st_mtime_ns, name))
    return [name for _, name in sorted(found)]


def news(repo: Repository) -> list[str]:
    """What came of the versions measured since this was last asked, one line each."""
    path = _news(repo)
    data = tree.read(path)
    if not data:
        return []
    path.unlink(missing_ok=True)
    return data.decode("utf-8", "replace").splitlines()


def log_of(repo: Repository, version: str) -> Path:
    """Where measuring this version is logged."""
    return _logs(repo) / f"{version}{LOG_SUFFIX}"


def _tell(repo: Repository, line: str) -> None:
    before = tree.read(_news(repo)) or b""
    atomic.write(_news(repo), before + line.encode("utf-8", "replace") + b"\n")


def _is_working(repo: Repository) -> bool:
    path = _folder(repo) / "lock"
    if not path.exists():
        return False
    try:
        with Lock(path, 0).hold():
            return False
    except LockTimeout:
        return True


def _lock(repo: Repository) -> Lock:
    return Lock(_folder(repo) / "lock", _PATIENCE)


def _folder(repo: Repository) -> Path:
    return repo.root / PERUN_FOLDER / FOLDER


def _queue(repo: Repository) -> Path:
    return _folder(repo) / "queue"


def _news(repo: Repository) -> Path:
    return _folder(repo) / "news"


def _logs(repo: Repository) -> Path:
    return repo.root / PERUN_FOLDER / "logs"
