"""Which file a command runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from perun.errors import JobFailed

# It may be set, but not make this program.
_BUILD_IT: Final = (
    "a fresh working copy of another version holds only what is in git: "
    "set execute.pre_run to what builds the program"
)


def find_executable(name: str, cwd: Path, environ: Mapping[str, str]) -> str:
    """Absolute path of the program `name`: relative to `cwd` if it has a slash, else on the PATH.

    :raises JobFailed: if there is none, or it may not be executed.
    """
    folders = [""] if "/" in name else environ.get("PATH", os.defpath).split(os.pathsep)
    refused = ""
    for folder in folders:
        candidate = os.path.join(cwd, folder, name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
        if os.path.exists(candidate):
            refused = refused or candidate
    if refused and os.path.isdir(refused):
        raise JobFailed(f"the command {name!r} is a folder: {refused}")
    if refused:
        raise JobFailed(f"the command {name!r} is not executable: {refused}", f"chmod +x {refused}")
    if "/" in name:
        raise JobFailed(f"command not found: {name!r} in {cwd}", _BUILD_IT)
    raise JobFailed(
        f"command not found: {name!r} is in no folder of the PATH (running in {cwd})",
        f"write ./{name} for a program in that folder; {_BUILD_IT}",
    )
