"""What a command takes, its peak memory included, as a launcher of its own sees it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from perun.process import launcher


class Usage(NamedTuple):
    """What a launched command took: seconds of real, user and system time, and its peak memory in bytes.

    The peak is at least that of the launcher, about 9 MB.
    """

    real: float
    user: float
    system: float
    peak: int


def engine(path: str, argv: list[str], result: Path) -> list[str]:
    """The words that launch `argv`, the program at `path`; what it took is written to the file `result`."""
    return [sys.executable, "-I", "-S", launcher.__file__, str(result), path, *argv]


def read(result: Path) -> Usage:
    """What the last launched command took.

    :raises ValueError: where the file does not say it, as the launcher was killed.
    """
    try:
        real, user, system, peak = result.read_text(encoding="ascii").split()
    except OSError as problem:
        raise ValueError(str(problem)) from None
    return Usage(float(real), float(user), float(system), int(peak))
