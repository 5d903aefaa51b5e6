"""Unfinished files, working copies and scratch folders of killed processes: which of them certainly nobody
uses any more.

This is the one rule for all that is judged by the process in its name
(:func:`perun.core.atomic.process_mark`).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Final

from perun.core.atomic import TEMPORARY_PREFIX, remove_unfinished, started, system

_PROCESS: Final = r"(?P<number>\d{1,10})(?:-(?P<system>[0-9a-f]{8})(?P<started>[0-9a-f]{4})?)?"
_WRITER: Final = re.compile(rf"{re.escape(TEMPORARY_PREFIX)}{_PROCESS}-[0-9a-f]{{12}}(?:\.\w+)?", re.ASCII)
_OF_A_RUN: Final = re.compile(rf"(?:worktree|collect)-{_PROCESS}(?:-.*)?", re.ASCII | re.DOTALL)
MIN_AGE: Final = 24 * 3600.0
"""Seconds after which an unfinished file counts as left over if its process cannot be asked for: writing
one takes seconds."""
MIN_AGE_OF_FOLDER: Final = 7 * MIN_AGE
"""The same for the folder of a run, in which one measurement may take days."""


def is_unfinished(name: str) -> bool:
    """Whether the file of this name is one that somebody writes, or was killed while writing."""
    return name.startswith(TEMPORARY_PREFIX)


def is_of_a_run(name: str) -> bool:
    """Whether a run makes folders of such names in `.perun/tmp`: working copies and scratch folders."""
    return _OF_A_RUN.fullmatch(name) is not None


def is_left_over(path: Path, min_age: float | None = None) -> bool:
    """Whether certainly nobody uses the unfinished file, or the folder of a run, any more.

    Its process ran on this system and is gone; or it ran elsewhere (another machine, boot or PID namespace)
    and nothing of it has changed for a long time. What is not named by Perun is never left over.

    :param min_age: that time in seconds, instead of the usual one for its kind.
    """
    match = _WRITER.fullmatch(path.name) or _OF_A_RUN.fullmatch(path.name)
    if match is None:
        return False
    if match["system"] == system():
        return not is_alive(int(match["number"]), match["started"])
    if min_age is None:
        min_age = MIN_AGE if is_unfinished(path.name) else MIN_AGE_OF_FOLDER
    try:
        return time.time() - _changed(path) > min_age
    except OSError:
        return False


def _changed(path: Path) -> float:
    """When the file changed last, or the folder or something in it, in seconds since 1970."""
    times = [path.lstat().st_mtime]
    if path.is_dir() and not path.is_symlink():
        times += [entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(path)]
    return max(times)


def found(root: Path) -> Iterator[Path]:
    """The unfinished files and folders in the folder and all below it, sorted within each folder.

    Working trees, as below `.perun/tmp`, hold files of the project, not ours.
    """
    for folder, folders, names in os.walk(root):
        if ".git" in names or ".git" in folders:
            folders.clear()
            continue
        yield from (Path(folder, name) for name in sorted([*folders, *names]) if is_unfinished(name))
        folders[:] = sorted(name for name in folders if not is_unfinished(name))


def sweep(root: Path) -> list[Path]:
    """Remove the unfinished files in the folder and all below it that are left over; those removed."""
    return [path for path in found(root) if remove(path)]


def sweep_folder(folder: Path) -> None:
    """As :func:`sweep`, for the folder alone."""
    for name in os.listdir(folder):
        if is_unfinished(name):
            remove(folder / name)


def remove(path: Path) -> bool:
    """Remove the unfinished file if it is left over; whether that was done."""
    if not is_left_over(path):
        return False
    with suppress(OSError):
        remove_unfinished(path)
        return True
    return False


def remove_folder(folder: Path) -> None:
    """Remove a folder, write-protected parts of it included; nothing happens if there is none.

    :raises OSError: names the folder, if something of it cannot be removed.
    """
    if not folder.exists():
        return
    folder.chmod(0o700)
    for place, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    try:
        rmtree(folder)
    except OSError as problem:
        problem.filename = str(folder)  # it is told by its name alone
        raise


def is_alive(process: int, since: str | None = None) -> bool:
    """Whether there is a process of that number on this system, whoever's.

    :param since: what :func:`perun.core.atomic.started` said of it; where it says another thing now, the
        number is that of a new process.
    """
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # it is another user's
    with suppress(OSError):
        if os.readlink("/proc/self") == str(os.getpid()):  # else /proc is that of another PID namespace
            now = started(process)
            return now == since if now and since else bool(now)
    return True
