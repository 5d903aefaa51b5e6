"""Folders that a version control system makes beside the user's."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import rmtree


def remove(folder: Path) -> None:
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
