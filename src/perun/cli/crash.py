"""The report of an unexpected error: a bug in Perun, which the user should not have to read."""

from __future__ import annotations

import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from perun import __version__
from perun.cli.session import Session
from perun.porcelain.repository import PERUN_FOLDER, enclosing


def report_crash(session: Session, bug: Exception, arguments: Sequence[str]) -> int:
    """Write what happened to `.perun/logs`, or a temporary folder, and name the file; exit code 70."""
    lines = [
        f"perun {__version__}, Python {platform.python_version()}, {platform.platform()}",
        "arguments: " + " ".join(map(repr, arguments)),
        "",
        *traceback.format_exception(bug),
    ]
    name = time.strftime("crash-%Y-%m-%d-%H-%M-%S.txt", time.gmtime())
    root = next(enclosing(session.cwd), None)
    folders = [root / PERUN_FOLDER / "logs"] if root else []
    for folder in (*folders, Path(tempfile.gettempdir())):
        try:
            folder.mkdir(exist_ok=True)
            path = folder / name
            path.write_text("\n".join(lines), encoding="utf-8")
        except OSError:
            continue
        session.fail(
            f"Perun failed unexpectedly: {type(bug).__name__}: {bug}",
            f"this is a bug in Perun; please report it with {path} (perun --dev-mode shows it here)",
        )
        return 70
    sys.stderr.write("\n".join(lines))
    return 70
