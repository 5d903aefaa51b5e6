"""The user: which files are his own, and where his settings and caches lie."""

from __future__ import annotations

import os
from collections.abc import Mapping
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
