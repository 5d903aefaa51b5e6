"""Single runs of a command, timed one by one, and the profile that the time collector would make of them.

What measures commands in turns, `perun compare`, `perun bench` and `perun doctor noise`, times its runs here.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.plugin.api import Run
from perun.porcelain.repository import Repository
from perun.porcelain.run import collecting
from perun.porcelain.run.jobs import Job
from perun.process.execution import Execution, Sample

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_PADDING: Final = "PERUN_PADDING"
"""The variable that makes the environment of each run of another size.

Its size moves the stack, which alone can change times by several percent: T. Mytkowicz et al., Producing
Wrong Data Without Doing Anything Obviously Wrong!, ASPLOS 2009.
"""
_LONGEST_PADDING: Final = 4096


class Timed(NamedTuple):
    """One run, and the last lines of its standard error where it failed."""

    sample: Sample
    errors: Sequence[str] = ()


class TimedRuns:
    """Runs one command, each time in an environment of random size; a context manager, as `Execution` is.

    :param run: the command, its folder and its environment. :param scratch: a folder for what the runs need.
    :param seconds: after which a run is stopped; 0 for never. :param core: the processor it is kept on.
    :param engine: the words of what starts it and records it. :param end_group: kill what it leaves running.
    :param while_it_can_run: see :class:`Execution`.
    """

    def __init__(
        self,
        run: Run,
        scratch: Path,
        dice: random.Random,
        seconds: float = 0.0,
        core: int | None = None,
        engine: Sequence[str] = (),
        *,
        end_group: bool = False,
        while_it_can_run: bool = False,
    ) -> None:
        self._dice = dice
        self._execution = Execution(
            run, scratch, seconds, engine=engine, core=core, end_group=end_group,
            while_it_can_run=while_it_can_run,
        )  # fmt: skip

    def __enter__(self) -> TimedRuns:
        self._execution.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._execution.__exit__(*exc)

    def record(self) -> Timed:
        """Run it once; that it failed or was stopped is in the sample.

        :raises JobFailed: if it cannot be started.
        """
        self._execution.set_variable(_PADDING, "x" * self._dice.randrange(_LONGEST_PADDING))
        sample = self._execution.record()
        if sample.interruption is not None:
            raise sample.interruption
        failed = sample.status and not sample.early
        return Timed(sample, self._execution.last_errors() if failed else ())


def time_profile(
    repo: Repository, job: Job, samples: Sequence[Sample], machine_state: Mapping[str, Any], **params: Any
) -> Profile:
    """The profile of the time collector of runs that were timed, in their order.

    :param params: what differs of the parameters of that collector, beside the number of runs.
    """
    collector = repo.registry.get("collect", "time")
    given = collector.Params(repeat=len(samples), **params)
    made: Profile = collector.make_profile(Run(job.cmd, job.args, job.workload), samples, given)
    with_params = replace(job, collector=replace(job.collector, params=given))
    return collecting.complete(made, with_params, machine_state)
