"""Choosing the way in which a program is counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from perun.fuzz.coverage.api import Coverage, Target
from perun.fuzz.coverage.gcov import GcovCoverage

Backend = Literal["auto", "gcov", "sancov"]
BACKENDS: Final[tuple[Backend, ...]] = ("auto", "gcov", "sancov")


def open_coverage(
    target: Target, scratch: Path, backend: Backend = "auto", *, notes: Sequence[Path] = ()
) -> Coverage:
    """What counts the executions of a program; it is not started yet.

    :param scratch: an empty folder, for nothing else.
    :param backend: `auto` takes the one that the program is compiled for.
    :param notes: folders with `.gcno` files (`--gcno-path`, `--source-path`), for programs that were moved
        after they were built.
    """
    return GcovCoverage(target, scratch, notes)
