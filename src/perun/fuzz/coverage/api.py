"""The interface of all ways to count what a program executes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

Outcome = Literal["ok", "fault", "hang"]
"""How an execution ended: by itself, by a signal of its own (a crash), or by the time limit."""

InputWay = Literal["file", "stdin", "argument"]
"""How a program gets its input: as a file that an argument names, on standard input, or as an argument."""

Backend = Literal["auto", "gcov", "sancov"]
BACKENDS: Final[tuple[Backend, ...]] = ("auto", "gcov", "sancov")
"""Who counts: gcc, or clang; `auto` is what the program is compiled for."""

PLACE: Final = "@@"
"""The argument, or the part of one, that stands for the input; without it the input is appended."""


class CoverageTarget(NamedTuple):
    """The program that is run.

    :ivar argv: the program and its arguments; :data:`PLACE` in them stands for the path of the input, or for
        the input itself.
    :ivar input: how it gets its input.
    :ivar suffix: how the name of the input file ends (`".xml"`), for programs that look at it.
    :ivar cwd: the folder in which it runs.
    :ivar environ: its whole environment.
    :ivar memory: most bytes of address space of the program, None for no limit.
    """

    argv: tuple[str, ...]
    input: InputWay
    cwd: Path
    environ: Mapping[str, str]
    suffix: str = ""
    memory: int | None = None


class CoverageRun(NamedTuple):
    """What one run of a program did.

    :ivar code: its exit code; negative if a signal ended it, as in :mod:`subprocess`.
    :ivar total: executed lines, each as often as it was executed; with counters of edges, the sum of these.
    :ivar counts: how often each line, or edge, was executed; the places are the same in all executions of a
        :class:`Coverage`. The array belongs to the caller.
    :ivar seconds: real time of the run, but for what a long one has waited for a core. Of a hang: what it had
        until it was ended, which is less than its limit where there was no time any more.
    """

    outcome: Outcome
    code: int
    total: int
    counts: NDArray[numpy.int64]
    seconds: float


class Coverage(Protocol):
    """Runs one program on many inputs, one after the other; not to be shared by threads or processes.

    :ivar unit: what :attr:`CoverageRun.counts` counts, `"lines"` or `"edges"`.
    :ivar note: what the user should know of the way it works, e.g. that no fork server can be used and why;
        empty if nothing. It is known after :meth:`start`.
    """

    unit: str
    note: str

    def start(self) -> None:
        """Prepare for runs.

        :raises PerunError: if the program cannot be run, or is not compiled with counters; the hint says how
            to.
        """
        ...

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> CoverageRun:
        """Run the program on an input; all its processes are ended after `timeout` seconds.

        :param timeout: seconds without those in which it waits for a core while others have all of them, so
            that a busy machine makes no hang.
        :param until: when it is ended at the latest, as :func:`time.monotonic` counts.
        :raises PerunError: if it can be run no more.
        """
        ...

    def close(self) -> None:
        """End all that is left of it; may be called twice, and without :meth:`start`."""
        ...
