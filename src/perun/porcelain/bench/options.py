"""What the user of `perun bench` asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perun.errors import UsageError

SHELLS: Final = ("none", "sh")
SECONDS: Final = 10.0
"""Budget of each command, where the user gives none for all of them together."""
MIN_RUNS: Final = 3
"""Runs of each command, however long they take: fewer tell nothing of how much they vary."""
FIRST_LOOK: Final = 10
"""Runs before which no interval is narrow enough: it is too uncertain itself."""
PRECISION: Final = 0.02


@dataclass(frozen=True)
class BenchOptions:
    """How to measure.

    :ivar commands: each with its arguments, as one text. :ivar parameters: names with their values, which are
        put in for `{NAME}`.
    :ivar precision: half the width of the interval of the mean, as a share of it, at which a command is
        measured well enough. :ivar budget: seconds for all; None for :data:`SECONDS` for each command.
    :ivar runs: of each command; then neither precision nor budget end it. :ivar min_runs: and
        :ivar max_runs: of each command, else.
    :ivar warmup: runs of each command that are not counted.
    :ivar prepare: a command that runs before each run, :ivar conclude: after each, :ivar cleanup: after all
        runs of a command. :ivar input: a file for standard input.
    :ivar shell: `none`, or `sh`, which runs all of these commands then.
    :ivar save: write the commands into the job matrix.
    """

    commands: tuple[str, ...]
    parameters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    precision: float = PRECISION
    budget: float | None = None
    runs: int | None = None
    min_runs: int = MIN_RUNS
    max_runs: int | None = None
    warmup: int = 1
    prepare: str = ""
    conclude: str = ""
    cleanup: str = ""
    input: str = ""
    shell: str = SHELLS[0]
    ignore_failure: bool = False
    save: bool = False


def parameter(text: str) -> tuple[str, tuple[str, ...]]:
    """The name and the values of `NAME=a,b,c`.

    :raises UsageError: where it is not of that form.
    """
    name, equals, values = text.partition("=")
    found = tuple(values.split(","))
    if not name.isidentifier() or not equals or not all(found):
        what = f"--parameter {text!r} is not of the form NAME=a,b,c"
        raise UsageError(what, "e.g. --parameter n=10,100,1000")
    return name, tuple(dict.fromkeys(found))
