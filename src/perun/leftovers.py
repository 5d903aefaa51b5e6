"""Unfinished files and folders of killed processes: which of them certainly nobody writes any more."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from perun.atomic import TEMPORARY_PREFIX, remove_unfinished, system

_WRITER: Final = re.compile(
    re.escape(TEMPORARY_PREFIX) + r"(\d{1,10})-(?:([0-9a-f]{8})-)?[0-9a-f]{12}(?:\.\w+)?"
)
MIN_AGE: Final = 24 * 3600.0
"""Seconds after which an unfinished file counts as left over if its process cannot be asked for: writing
one takes seconds."""


def is_unfinished(name: str) -> bool:
    """Whether the file of this name is one that somebody writes, or was killed while writing."""
    return name.startswith(TEMPORARY_PREFIX)


def is_left_over(path: Path) -> bool:
    """Whether certainly nobody writes the unfinished file any more.

    Its process ran on this system and is gone; or it ran elsewhere (another machine, boot or PID namespace)
    and the file has not changed for a day. What is not named by Perun is never left over.
    """
    match = _WRITER.fullmatch(path.name)
    if match is None:
        return False
    if match[2] == system():
        return not is_alive(int(match[1]))
    try:
        return time.time() - path.lstat().st_mtime > MIN_AGE
    except OSError:
        return False


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


def is_alive(process: int) -> bool:
    """Whether there is a process of that number on this system, whoever's."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # it is another user's
    return True
