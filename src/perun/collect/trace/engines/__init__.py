"""The engines, each of which records the calls of a program that was not built for it (manual 4.1.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from perun.collect._calls.events import Calls
from perun.collect.trace.plan import TracePlan
from perun.core.errors import CollectorUnavailable
from perun.core.process.execution import TIMEOUT, Execution, Output, RunSample
from perun.plugin.api import Run
from perun.profile.amounts import readable
from perun.profile.incomplete import Incomplete

if TYPE_CHECKING:
    from perun.collect.trace.engines.calibration import TimeCorrection

OUTPUTS = {"default": Output.SHOW, "capture": Output.COPY, "suppress": Output.DISCARD}
"""The values of `--output-handling`."""


class EngineContext(NamedTuple):
    """Where and how a command runs.

    :ivar folder: the folder for all files of the run. :ivar output: a key of :data:`OUTPUTS`.
    :ivar timeout: seconds; 0 for no limit. :ivar cached: whether SystemTap may cache compiled scripts.
    :ivar follow: what to trace in another program that the command executes; None to follow none.
    """

    run: Run
    folder: Path
    output: str
    timeout: float
    cached: bool = True
    follow: Callable[[str], TracePlan] | None = None

    def execute(
        self,
        engine: Sequence[str],
        environ: Mapping[str, str],
        is_over: Callable[[int], bool] | None = None,
    ) -> EngineExit:
        """Have the engine run the command; after a timeout or an interruption it can still write its files.

        :param engine: the command line of the engine, the measured command included. :param is_over: see
            :class:`~perun.core.process.execution.Execution`.
        :raises JobFailed: where the engine cannot be started.
        """
        run = self.run._replace(environ=environ)
        output = OUTPUTS[self.output]
        with Execution(
            run, self.folder, self.timeout, output=output, engine=engine, single_run=True, is_over=is_over
        ) as execution:
            sample = execution.record()
            return EngineExit(sample, [line for line in execution.last_errors() if line])


class EngineExit(NamedTuple):
    """How an engine ended, and the last lines that it and the command wrote to standard error."""

    sample: RunSample
    errors: list[str]


class TraceRecording(NamedTuple):
    """What an engine recorded.

    :ivar calls: in batches of one thread each; the numbers of functions are positions in the plan.
    :ivar sample: the run; its status is that of the measured command. :ivar errors: see :class:`EngineExit`.
    :ivar processes: thread id to process id, as far as known; complete once all calls of the thread are read.
    :ivar sampled: the numbers of the functions that the engine has sampled itself.
    :ivar lacks: what the recording lacks; complete once all calls are read.
    :ivar plan: with what was traced in followed programs; None where that is the plan of the program alone.
    :ivar switched_off: the numbers of the functions that were not probed all the time.
    """

    calls: Iterator[Calls]
    sample: RunSample
    errors: Sequence[str] = ()
    processes: Mapping[int, int] = MappingProxyType({})
    sampled: Set[int] = frozenset()
    lacks: Sequence[Incomplete] = ()
    plan: TracePlan | None = None
    switched_off: Set[int] = frozenset()

    def process(self, calls: Calls) -> int:
        """The id of the process of a batch of calls; 0 where it is not known."""
        return self.processes.get(int(calls.thread[0]), 0) if len(calls) else 0


def nothing_recorded(engine: str, sample: RunSample, why: str, hint: str) -> CollectorUnavailable:
    """The error of an engine that recorded nothing.

    :param why: the reason, unless the time limit was too short.
    """
    if sample.early == TIMEOUT:
        after = readable(sample.real, "s")
        return CollectorUnavailable(
            f"the time limit ended the run after {after}, before {engine} recorded anything",
            "raise --timeout (-t)",
        )
    return CollectorUnavailable(f"{engine} recorded nothing{why}", hint)


class TraceEngine(Protocol):
    """What records calls.

    :cvar switches: the optimisations that it does not support while the program runs, each with the reason.
    :ivar notes: what the recording lacks and why; complete once all calls are read.
    :ivar method: how it attaches its probes, if it has several methods; set by :meth:`unavailable`.
    :ivar missed: number of exits that are missing. :ivar lost: number of lost calls.
    :ivar correction: what :meth:`record` subtracts from times; measured by it where it is None.
    """

    name: ClassVar[str]
    switches: ClassVar[Mapping[str, str]]
    notes: list[str]
    method: str
    missed: int
    lost: int
    correction: TimeCorrection | None

    def __init__(self, environ: Mapping[str, str], cache: Path | None = None) -> None: ...

    def unavailable(self, plan: TracePlan | None = None) -> tuple[str, str]:
        """Why it cannot run on this machine, or not with this plan, and what to do; empty texts if it can."""
        ...

    def record(self, plan: TracePlan, context: EngineContext) -> TraceRecording:
        """Run the command and record it.

        :raises CollectorUnavailable: where the engine fails, or does not support the plan.
        :raises JobFailed: where the command cannot be started.
        """
        ...
