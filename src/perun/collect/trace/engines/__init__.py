"""The engines: ways to record calls of functions of a program as it is (manual 4.1.1, `--engine`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Protocol

from perun.collect._calls.events import Calls
from perun.collect.trace.plan import Plan
from perun.collect.trace.running import Surroundings


class Recorded(NamedTuple):
    """What an engine recorded.

    :ivar calls: in pieces, each of one thread; the numbers of functions are positions in the plan.
    :ivar status: wait status of the measured command. :ivar early: why it was stopped, if it was.
    :ivar real: duration in seconds. :ivar processes: the number of the process of a thread in the kernel, as
        far as it is known; complete once the calls of the thread were taken.
    """

    calls: Iterator[Calls]
    status: int
    early: str
    real: float
    processes: Mapping[int, int] = MappingProxyType({})

    def process(self, calls: Calls) -> int:
        """The process that a piece of the calls is of; 0 where it is not known."""
        return self.processes.get(int(calls.thread[0]), 0) if calls.total else 0


class Engine(Protocol):
    """One way to record.

    :ivar notes: what the recording lacks and why; complete when all calls were taken.
    :ivar way: how it attaches its probes, where it has several ways to; set by :meth:`unavailable`.
    :ivar missed: exits that were missing and had to be made up; :ivar lost: calls that were lost.
    """

    name: ClassVar[str]
    notes: list[str]
    way: str
    missed: int
    lost: int

    def __init__(self, environ: Mapping[str, str], cache: Path | None = None) -> None: ...

    def unavailable(self, plan: Plan | None = None) -> tuple[str, str]:
        """Why it cannot run here, or not this plan, and what to do about it; empty texts where it can."""
        ...

    def record(self, plan: Plan, around: Surroundings) -> Recorded:
        """Run the command and record it.

        :raises CollectorUnavailable: where that turns out to be impossible.
        :raises JobFailed: where the command cannot be started.
        """
        ...
