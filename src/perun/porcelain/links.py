"""Folders of a `.perun` that are links: Perun would read, write and delete elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_BELOW = ("objects", "cache", "hooks", "stats")
"""Folders with folders of Perun's own in them."""
_OTHERS = frozenset({"plugins"})
"""What lies there only runs where the user trusts it, wherever it is."""


def links_of(perun_folder: Path) -> list[Path]:
    """The `.perun` itself and the folders in it, as far as they are links to folders.

    That reads no more than the names of a few folders, as each command asks. Links to files need no question:
    no file of a `.perun` is opened through one.
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
        return  # there is none, or who reads it says why it cannot be read
    yield from (folder / name for name in sorted(links) if name not in _OTHERS)
