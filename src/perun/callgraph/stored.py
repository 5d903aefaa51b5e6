"""The names under which call graphs are kept as statistics of a version (`perun stats`)."""

from __future__ import annotations

import hashlib
import os
import re
from typing import Final

_UNSAFE: Final = re.compile(r"[^\w.+-]+")
_MAX_NAME: Final = 60


def graph_name(collector: str, program: str) -> str:
    """The name of the static call graph of a program, e.g. `cg--trace-sqlite3`.

    :param program: its path.
    """
    return "cg--" + file_name(f"{collector}-{os.path.basename(program)}")


def file_name(text: str) -> str:
    """A file name for a text, another one for each."""
    short = _UNSAFE.sub("_", text)
    if short == text and len(short) <= _MAX_NAME:
        return short
    return f"{short[:_MAX_NAME]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
