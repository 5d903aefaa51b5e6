"""The engines: ways to count the instructions of a program."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from shutil import which
from typing import ClassVar, Final, NamedTuple, Protocol

from perun.core.process import programs
from perun.core.process.execution import RunSample
from perun.native.costs import InstructionCosts, LineCosts
from perun.plugin.api import CollectContext, Run
from perun.profile.incomplete import Incomplete


class CountingOptions(NamedTuple):
    """What is counted, and how.

    :ivar callers: length of the call chains that are told apart. :ivar children: whether processes that the
        command starts count too. :ivar python: whether functions of Python are told instead of those of C.
        :ivar timeout: seconds; 0 for never. :ivar marked: whether nothing counts before the program says so.
    """

    callers: int = 10
    children: bool = True
    python: bool = False
    timeout: float = 0.0
    marked: bool = False


class InstructionRecording(NamedTuple):
    """A run that ended, and what reads its recording.

    :ivar sample: the run; its status is that of the measured command. :ivar errors: the last lines of its
        standard error.
    """

    sample: RunSample
    errors: Sequence[str]


class InstructionCounts(NamedTuple):
    """What an engine counted.

    :ivar processes: how many processes. :ivar lacks: what is missing beside what the end of the run cut off.
    :ivar notes: what the user should know of it. :ivar lines: what lines of sources cost.
    """

    costs: InstructionCosts
    processes: int
    lacks: Sequence[Incomplete]
    notes: Sequence[str]
    lines: LineCosts | None = None


class CountingEngine(Protocol):
    """One way to count.

    :cvar exact: whether the cost of each function is counted; otherwise only that of all is, and samples
        divide it.
    """

    name: ClassVar[str]
    exact: ClassVar[bool]

    def __init__(self, environ: Mapping[str, str]) -> None: ...

    def unavailable(self) -> tuple[str, str]:
        """Why it cannot run here, and what to do about it; empty texts where it can."""
        ...

    def version(self) -> str:
        """The version of the program that counts; counts of different ones may differ a little."""
        ...

    def record(self, run: Run, options: CountingOptions, ctx: CollectContext) -> InstructionRecording:
        """Run the command and record it.

        :raises JobFailed: where it cannot be started.
        """
        ...

    def counted(self) -> InstructionCounts:
        """What was recorded last.

        :raises JobFailed: where that is nothing.
        """
        ...


# Runs that do the same each time: no random addresses, no random hashes, an environment of one size.
#
# Where the stack and the libraries lie decides how text is aligned and how hash tables of addresses fall out;
# the words and variables that a program starts with lie on its stack (Mytkowicz, Diwan, Hauswirth, Sweeney:
# Producing wrong data without doing anything obviously wrong, 2009). A program that is measured at another
# path, or by a user with another environment, must not count differently for that.

PADDING: Final = "PERUN_PADDING"
"""The variable that fills the environment up."""
STEP: Final = 16 * 1024
"""Bytes: the environment and the words of a command take a multiple of that together."""
_POINTER: Final = 8


def repeatable(run: Run) -> Run:
    """The run with an environment that makes it repeatable.

    Hashes of Python's texts get the seed 0, unless the user has chosen a seed.
    """
    environ = dict(run.environ)
    if not environ.get("PYTHONHASHSEED", "").isdecimal():
        environ["PYTHONHASHSEED"] = "0"
    environ.pop(PADDING, None)
    missing = -(_size(run.command().argv, environ) + _size([], {PADDING: ""})) % STEP
    return run._replace(environ={**environ, PADDING: "x" * missing})


def _size(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """Bytes that these take on the stack of a new process, with a pointer for each."""
    texts = [*words, *(f"{name}={value}" for name, value in environ.items())]
    return sum(len(os.fsencode(text)) + 1 + _POINTER for text in texts)


def fixed_addresses(environ: Mapping[str, str]) -> list[str]:
    """The words that stand before a command so that its addresses are not random.

    They are none where that cannot be: `setarch` is missing, or the system, e.g. a container, refuses.
    """
    path = which("setarch", path=environ.get("PATH", os.defpath))
    if path is None:
        return []
    words = [path, "-R"]
    try:
        done = programs.run([*words, "true"], environ=environ)
    except OSError:
        return []
    return words if done.code == 0 else []
