"""The report of an unexpected error: of a bug in Perun, or of what a plugin raised.

The user should not have to read it; who repairs it needs it.
"""

from __future__ import annotations

import errno
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from perun import __version__
from perun.cli.session import Session
from perun.repository.repository import PERUN_FOLDER, enclosing


def report_crash(session: Session, bug: Exception, arguments: Sequence[str]) -> int:
    """Write what happened to a file, and name it; exit code 70. With `-vv` the traceback is shown too."""
    session.trace(bug)
    path = write_report(session, bug, arguments)
    if path is None:
        sys.stderr.write(_text(bug, arguments))
        return 70
    here = "" if session.shows_tracebacks else " (perun -vv shows it here)"
    session.fail(
        f"Perun failed unexpectedly: {type(bug).__name__}: {bug}",
        f"this is a bug in Perun; please report it with {path}{here}",
    )
    return 70


def write_report(session: Session, problem: Exception, arguments: Sequence[str]) -> Path | None:
    """Write the traceback to `.perun/logs`, or to a temporary folder; None if neither can be written."""
    name = time.strftime("crash-%Y-%m-%d-%H-%M-%S", time.gmtime())
    root = next(enclosing(session.cwd), None)
    logs = root / PERUN_FOLDER / "logs" if root else None
    folders = [logs] if logs is not None and not logs.is_symlink() else []
    for folder in (*folders, Path(tempfile.gettempdir())):
        try:
            folder.mkdir(exist_ok=True)
            return _write_new(folder, name, _text(problem, arguments))
        except OSError:
            continue
    return None


def _text(problem: Exception, arguments: Sequence[str]) -> str:
    lines = [
        f"perun {__version__}, Python {platform.python_version()}, {platform.platform()}",
        "arguments: " + " ".join(map(repr, arguments)),
        "",
        *traceback.format_exception(problem),
    ]
    return "\n".join(lines) + "\n"


def _write_new(folder: Path, name: str, text: str) -> Path:
    """Write the text to a new file that only the user may read, never through a link; its path."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for ending in (".txt", *(f"-{os.urandom(4).hex()}.txt" for _ in range(8))):
        path = folder / f"{name}{ending}"
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileExistsError:
            continue
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return path
    raise FileExistsError(errno.EEXIST, "its name is taken", str(folder / name))
