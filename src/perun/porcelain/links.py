"""Folders of a `.perun` that are links: Perun would read, write and delete elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_BELOW = ("objects", "cache", "hooks", "stats", "tmp", "workloads")
"""Folders in which Perun creates folders."""
_FOLLOWED = frozenset({"plugins"})
"""A link here needs no question: files in this folder run only if the user trusts them, wherever they are."""


def links_of(perun_folder: Path) -> list[Path]:
    """The `.perun` itself and the folders in it, as far as they are links to folders.

    It reads only the names in a few folders, because each command calls it. Links to files are not included:
    no file of a `.perun` is opened through a link.
    """
    found = [perun_folder] if perun_folder.is_symlink() else []
    for folder in (perun_folder, *(perun_folder / name for name in _BELOW)):
        found += _links_in(folder)
    return found


def _links_in(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            links = [one.name for one in entries if one.is_symlink() and one.is_dir()]
    except OSError:
        return  # it does not exist, or the code that reads it reports why it cannot
    yield from (folder / name for name in sorted(links) if name not in _FOLLOWED)
