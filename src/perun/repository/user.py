"""The user: which files are his own, and where his settings and caches lie."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path


def own_users(environ: Mapping[str, str]) -> frozenset[int]:
    """The users whose files count as one's own: oneself, and under sudo who called it, as in git."""
    user = os.geteuid()
    caller = environ.get("SUDO_UID", "")
    if user == 0 and caller.isascii() and caller.isdigit() and len(caller) < 11:
        return frozenset((user, int(caller)))
    return frozenset((user,))


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Where Perun keeps what it can make again: `$XDG_CACHE_HOME/perun`, else `~/.cache/perun`; else None."""
    folder = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(folder):  # so says the specification of these folders
        folder = os.path.join(environ.get("HOME", ""), ".cache")
    return Path(folder, "perun") if os.path.isabs(folder) else None


def shared_folder(environ: Mapping[str, str]) -> Path:
    """The folder of `shared.yml`: `$PERUN_CONFIG_DIR`, else `~/.config/perun` (manual 11.1)."""
    if environ.get("PERUN_CONFIG_DIR"):
        return Path(environ["PERUN_CONFIG_DIR"])
    return Path(environ.get("HOME") or "~").expanduser() / ".config" / "perun"


# Folders of a `.perun` that are links: Perun would read, write and delete elsewhere.

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
