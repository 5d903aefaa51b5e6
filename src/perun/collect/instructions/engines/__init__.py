"""The engines: ways to count the instructions of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol

from perun.collect.instructions.profile import Costs
from perun.plugin.api import CollectContext, Run
from perun.process.execution import Sample
from perun.profile.incomplete import Incomplete


class Options(NamedTuple):
    """What is counted, and how.

    :ivar callers: length of the call chains that are told apart. :ivar children: whether processes that the
        command starts count too. :ivar python: whether functions of Python are told instead of those of C.
        :ivar timeout: seconds; 0 for never.
    """

    callers: int = 10
    children: bool = True
    python: bool = False
    timeout: float = 0.0


class Recorded(NamedTuple):
    """A run that ended, and what reads its recording.

    :ivar sample: the run; its status is that of the measured command. :ivar errors: the last lines of its
        standard error.
    """

    sample: Sample
    errors: Sequence[str]


class Counted(NamedTuple):
    """What an engine counted.

    :ivar processes: how many processes. :ivar lacks: what is missing beside what the end of the run cut off.
    :ivar notes: what the user should know of it.
    """

    costs: Costs
    processes: int
    lacks: Sequence[Incomplete]
    notes: Sequence[str]


class Engine(Protocol):
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

    def record(self, run: Run, options: Options, ctx: CollectContext) -> Recorded:
        """Run the command and record it.

        :raises JobFailed: where it cannot be started.
        """
        ...

    def counted(self) -> Counted:
        """What was recorded last.

        :raises JobFailed: where that is nothing.
        """
        ...
