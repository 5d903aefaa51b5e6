"""Where a machine of a pool keeps projects, builds and results:

below the caches of the user of its worker.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from perun.config.layers import Config, Layer, load
from perun.errors import NotPerunRepository, UsageError
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.porcelain.trust import VARIABLE
from perun.porcelain.user import cache_folder, shared_folder
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
