"""Where a view writes: the file that the user named, or a new one that takes the place of nothing."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perun.errors import UsageError

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_NAME_LIMIT: Final = 100
_TRIES: Final = 1000


def destination(
    filename: str, view: str, profile: Profile, extension: str = "html", option: str = "--filename"
) -> Path:
    """The file to write: `filename` where it is given, else a name that no file bears yet.

    That is `<view>-<collector>-<cmd>-<workload>.<extension>`, with `(1)`, `(2)` ... where it is taken.

    :param option: what names the file on the command line, for the message.
    :raises UsageError: where no name is free.
    """
    if filename:
        return Path(filename)
    what = profile.configuration
    measured = (what.collector, os.path.basename(what.cmd), os.path.basename(what.workload))
    # ASCII letters alone, so that the name fits any file system whatever the profile has.
    cleaned = (re.sub(r"[^A-Za-z0-9_.+-]+", "_", part).strip("_.") for part in (view, *measured))
    stem = "-".join(part for part in cleaned if part)[:_NAME_LIMIT]
    names = (f"{stem}.{extension}", *(f"{stem}({count}).{extension}" for count in range(1, _TRIES)))
    for name in names:
        if not os.path.lexists(name):
            return Path(name)
    raise UsageError(f"no file name is free for the {view}", f"name one with {option}")
