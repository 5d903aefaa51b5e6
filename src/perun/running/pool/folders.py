"""Where a machine of a pool keeps projects, builds and results:

below the caches of the user of its worker.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from perun.core.config.layers import Config, Layer, load
from perun.core.errors import NotPerunRepository, UsageError
from perun.core.process.ending import guard
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.repository.trust import VARIABLE
from perun.repository.user import cache_folder, shared_folder
from perun.store import Store

NAME: Final = "PERUN_POOL_MACHINE"
"""The variable that names a machine where its host name does not, as in containers."""
RESULTS_KEPT: Final = 7 * 24 * 3600.0
"""Seconds after which nobody asks for a result any more."""
_PROJECT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BATCH: Final = re.compile(r"[0-9a-f]{16}")


def machine_name(environ: Mapping[str, str]) -> str:
    """What the machine is called: workers that say the same share its lock."""
    return environ.get(NAME) or os.uname().nodename


def folder(environ: Mapping[str, str], *parts: str) -> Path:
    """The folder of pools, or one below it, which is made.

    :raises NotPerunRepository: if the user has no folder for caches.
    """
    caches = cache_folder(environ)
    if caches is None:
        raise NotPerunRepository("there is no folder for caches", "set HOME or XDG_CACHE_HOME for the worker")
    path = caches.joinpath("pool", *parts)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def project(environ: Mapping[str, str], name: str, config: Mapping[str, object]) -> Repository:
    """The repository of a project on this machine, which is made where there is none.

    It has the commits that were sent, no working directory of its own, and no configuration but `config` and
    that of the user: what a version of the project has in its own `.perun` is not looked at.

    :param name: the checksum of its first commit.
    """
    if not _PROJECT.fullmatch(name):
        raise UsageError(f"{name!r} names no project")
    root = folder(environ, "projects", name)
    layers = (Layer("local", None, config, "memory"), *load([], shared_folder(environ)).layers)
    # The client trusts the project, and is trusted: he may send any command.
    trusting = {**environ, VARIABLE: str(root)}
    repo = Repository(root, root, Config(layers), trusting)
    with locked(root / "project.lock"):
        if not (root / ".git").exists():
            repo.registry.get("vcs", "git")(root, environ).init({})
        Store(root / PERUN_FOLDER).create()
    return repo


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of this file, which no other process has meanwhile."""
    descriptor = opened(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def opened(path: Path) -> int:
    """The descriptor of a file that is only locked; it is made if there is none."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def task_file(environ: Mapping[str, str], batch: str, number: int, suffix: str) -> Path:
    """A file of one task of a batch, e.g. its result."""
    if not _BATCH.fullmatch(batch):
        raise UsageError(f"{batch!r} names no batch")
    return folder(environ, "results") / f"{batch}-{int(number)}{suffix}"


def forget(environ: Mapping[str, str], batch: str) -> None:
    """Remove what is kept of the batch, and what is so old that nobody asks for it."""
    oldest = time.time() - RESULTS_KEPT
    for path in folder(environ, "results").iterdir():
        with suppress(OSError):
            if path.name.startswith(f"{batch}-") or path.stat().st_mtime < oldest:
                path.unlink()


# One measurement at a time on a machine, whichever schedulers and workers it has.
#
# The lock is a file in `/tmp` that the kernel locks (`flock`). Builds share it, a measurement has it alone,
# so that neither another measurement nor a build disturbs one. The guard of :mod:`perun.core.process`
# inherits it, which kills the measured program where the process of the job is killed: so it is free only
# when that is gone.

FOLDER: Final = Path("/tmp")
"""Not that of TMPDIR: users of a machine have others, and must meet at the same file."""
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FIRST: Final = 64
"""Descriptors from here on: the guard puts its own at small numbers."""


class MachineLock:
    """The lock of the machine of that name; close it at the end."""

    def __init__(self, machine: str, folder: Path = FOLDER) -> None:
        self.path = folder / f"perun-pool-{re.sub(r'[^A-Za-z0-9._-]', '_', machine)}.lock"
        self._descriptor = _opened(self.path)
        self._guarded = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold it with others: nothing is measured meanwhile."""
        self._take(fcntl.LOCK_SH)
        try:
            yield
        finally:
            self.release()

    def alone(self) -> None:
        """Wait until nobody else holds it, and hold it alone; :meth:`release` ends that."""
        self._take(fcntl.LOCK_EX)

    def release(self) -> None:
        """Let others have it."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let others have it for good."""
        self.release()
        os.close(self._descriptor)

    def _take(self, how: int) -> None:
        if not self._guarded:  # before the first command: the guard inherits it, no command does
            os.set_inheritable(self._descriptor, True)
            guard()
            os.set_inheritable(self._descriptor, False)
            self._guarded = True
        fcntl.flock(self._descriptor, how)


def _opened(path: Path) -> int:
    """The file, which the first user of the machine makes and any other may lock."""
    for _ in range(2):
        try:
            return _checked(path, os.open(path, _FLAGS))
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.close(os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o644))
        except OSError:
            break
    raise _wrong(path)


def _checked(path: Path, descriptor: int) -> int:
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _wrong(path)
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST)
    finally:
        os.close(descriptor)


def _wrong(path: Path) -> NotPerunRepository:
    return NotPerunRepository(
        f"{path} cannot be the lock of this machine", "remove it; Perun makes a new one"
    )
