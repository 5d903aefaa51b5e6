"""Whose `.perun` it is: that of another user is not used, as git does not use the repository of another user.

Otherwise whoever may write to a parent folder could put a `.perun` there (for git that was CVE-2022-24765).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from perun.errors import ForeignRepository
from perun.porcelain.user import own_users


def check(root: Path, environ: Mapping[str, str]) -> None:
    """Raise if `root` or its `.perun` belongs to another user, unless the user has said that he trusts it.

    Where there is no `.perun` yet, as before `perun init`, the folder alone decides. He has said so by
    `perun trust`, by `PERUN_TRUST`, or by `safe.directory` of git.

    :raises ForeignRepository: names the owner, and how to trust.
    """
    own = own_users(environ)
    perun = root / ".perun"
    try:
        there = perun.exists()
        owners = [(path, os.stat(path).st_uid) for path in (perun, root)[not there :]]
    except OSError as problem:
        raise ForeignRepository(f"{root} cannot be read: {problem.strerror}") from None
    foreign = next(((path, owner) for path, owner in owners if owner not in own), None)
    if foreign is None or _is_allowed(root, environ):
        return
    import shlex

    path, owner = foreign
    if not there:
        # `perun trust` needs a `.perun`, and git refuses the folder as well.
        raise ForeignRepository(
            f"{path} belongs to {_name(owner)}, not to you, so Perun makes no .perun there",
            f"if you trust it: git config --global --add safe.directory {shlex.quote(str(root.resolve()))}",
        )
    raise ForeignRepository(
        f"{path} belongs to {_name(owner)}, not to you, so Perun does not use its .perun",
        f"if you trust it: perun trust {shlex.quote(str(root))}  (in CI: PERUN_TRUST=1)",
    )


def _is_allowed(root: Path, environ: Mapping[str, str]) -> bool:
    from perun.plugin.registry import Registry
    from perun.porcelain import trust

    if trust.knows(root, environ):
        return True
    allowed: list[str] = Registry().get("vcs", "git").safe_folders(environ)
    return "*" in allowed or str(root.resolve()) in allowed


def _name(user: int) -> str:
    import pwd

    try:
        return f"the user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"the user with the number {user}"
