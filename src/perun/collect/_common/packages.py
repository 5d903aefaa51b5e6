"""Which package would bring the names that a stripped file lacks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from shutil import which
from typing import Final

from perun.process import programs

_PATIENCE: Final = 10.0
_SUFFIX: Final = "-dbgsym"


def debug_packages(paths: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """The packages of Debian and Ubuntu with the debug information of files of their packages, sorted.

    Empty where the system has no dpkg, or no package has one of the files.
    """
    tool = which("dpkg", path=environ.get("PATH", os.defpath))
    # With /lib a link to /usr/lib, a package may list its files below either.
    names = {name for path in paths for name in (path, os.path.realpath(path))}
    names |= {name.removeprefix("/usr") for name in names if name.startswith("/usr/lib")}
    if not tool or not names:
        return []
    try:
        done = programs.run(
            [tool, "-S", "--", *sorted(names)], environ={**environ, "LC_ALL": "C"}, timeout=_PATIENCE
        )
    except (OSError, programs.TimeoutExpired):
        return []
    owners = [line.split(": ", 1)[0] for line in done.stdout.decode("utf-8", "replace").splitlines()]
    # `libc6:amd64, libc6:i386: /path`; a diversion is told in a sentence.
    found = {owner.partition(":")[0] for line in owners for owner in line.split(", ") if " " not in owner}
    return sorted(f"{name}{_SUFFIX}" for name in found)
