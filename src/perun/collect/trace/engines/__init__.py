"""The engines: ways to record calls of functions of a program as it is (manual 4.1.1, `--engine`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Protocol

from perun.collect._calls.events import Calls
from perun.collect.trace.plan import Plan
from perun.plugin.api import Run
from perun.process.execution import Execution, Sample
from perun.process.streams import Output

OUTPUTS = {"default": Output.SHOW, "capture": Output.COPY, "suppress": Output.DISCARD}
"""The values of `--output-handling`."""


class EngineContext(NamedTuple):
    """Where and how a command runs.

    :ivar folder: for what is written while it runs. :ivar output: a key of :data:`OUTPUTS`.
    :ivar timeout: seconds; 0 for never. :ivar cached: whether SystemTap may keep compiled scripts.
    """

    run: Run
    folder: Path
    output: str
    timeout: float
    cached: bool = True

    def execute(self, engine: Sequence[str], environ: Mapping[str, str]) -> Ended:
        """Have the engine run the command; where its time is over or it is interrupted, the engine is left
        the time to write down what it has.

        :raises JobFailed: where it cannot be started.
        """
        run = self.run._replace(environ=environ)
        output = OUTPUTS[self.output]
        with Execution(
            run, self.folder, self.timeout, output=output, engine=engine, once=True
        ) as execution:
            sample = execution.record()
            return Ended(sample, [line for line in execution.last_errors() if line])


class Ended(NamedTuple):
    """How an engine ended, and the last lines of the standard error of it and of the command."""

    sample: Sample
    errors: list[str]


class Recorded(NamedTuple):
    """What an engine recorded.

    :ivar calls: in pieces, each of one thread; the numbers of functions are positions in the plan.
    :ivar sample: the run; its status is that of the measured command. :ivar errors: see :class:`Ended`.
    :ivar processes: the number of the process of a thread in the kernel, as far as it is known; complete once
        the calls of the thread were taken.
    """

    calls: Iterator[Calls]
    sample: Sample
    errors: Sequence[str] = ()
    processes: Mapping[int, int] = MappingProxyType({})

    def process(self, calls: Calls) -> int:
        """The process that a piece of the calls is of; 0 where it is not known."""
        return self.processes.get(int(calls.thread[0]), 0) if len(calls) else 0


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

    def record(self, plan: Plan, context: EngineContext) -> Recorded:
        """Run the command and record it.

        :raises CollectorUnavailable: where that turns out to be impossible.
        :raises JobFailed: where the command cannot be started.
        """
        ...
