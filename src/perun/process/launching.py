"""What a command takes, its peak memory included, as a small launcher of its own sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from perun.errors import CollectorUnavailable
from perun.extras import reinstall_command

LAUNCHER: Final = Path(__file__).with_name("perun_launch")
"""The program of `native/launcher.c`, which says why there has to be one."""


class Usage(NamedTuple):
    """What a launched command took: seconds of real, user and system time, and its peak memory in bytes.

    The peak is at least that of the launcher, between one and two megabytes.
    """

    real: float
    user: float
    system: float
    peak: int


def engine(path: str, argv: list[str], result: Path) -> list[str]:
    """The words that launch `argv`, the program at `path`; what it took is written to the file `result`.

    :raises CollectorUnavailable: if the launcher was not built.
    """
    if not LAUNCHER.is_file():
        raise CollectorUnavailable(
            f"the launcher that measures peak memory is missing: {LAUNCHER}",
            f"reinstall Perun from its sources: {reinstall_command()}",
        )
    return [str(LAUNCHER), str(result), path, *argv]


def read(result: Path) -> Usage:
    """What the last launched command took.

    :raises ValueError: if the file does not say it, as the launcher was killed.
    """
    try:
        real, user, system, peak = result.read_text(encoding="ascii").split()
    except OSError as problem:
        raise ValueError(str(problem)) from None
    return Usage(float(real) / 1e6, int(user) / 1e6, int(system) / 1e6, int(peak))
