"""What counts the executions of the fuzzed program, and how it is built for that."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from perun.fuzz.coverage.api import Coverage, Target
from perun.fuzz.coverage.opening import open_coverage
from perun.porcelain.fuzz.options import FuzzOptions
from perun.porcelain.fuzz.place import Place
from perun.process.command import split


def coverage_of(options: FuzzOptions, place: Place, suffix: str, name: str) -> Callable[[], Coverage]:
    """What makes the coverage of one process, not started yet.

    :param suffix: how names of input files end. :param name: of its folder for temporary files.
    """
    argv = tuple(split("command", f"{options.cmd} {options.args}"))
    way: Any = options.input
    target = Target(argv, way, place.counting, dict(place.environ), suffix)
    notes = [place.counting / one for one in (options.gcno, options.source) if one]
    scratch = place.scratch / name
    scratch.mkdir()
    backend: Any = options.backend
    return partial(open_coverage, target, scratch, backend, notes=notes)
