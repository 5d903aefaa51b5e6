"""Time collector: how long a command runs (manual 4.1.3).

Every run yields three resources: `real` (elapsed), `user` and `sys` time, the latter two with those of all
descendants that the command waited for. `waited` in the information on the collector are the seconds of each
run in which the first thread of the command was ready, and other programs had the processors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from perun.collect._common import runs as common
from perun.collect._common.runs import IGNORE_FAILURE, new_profile
from perun.core.process.command import exit_status, failed
from perun.core.process.execution import Execution, RunSample
from perun.plugin.api import CollectContext, Run
from perun.plugin.params import param, to_mapping
from perun.profile.factory import Profile

# The time collector: warms the command up, times it, and makes a profile of the times.

COLLECTOR_TYPE: Final = "time"
COLLECTOR_DEFAULT_UNITS: Final = {"time": "s"}


@dataclass(frozen=True)
class TimeParams:
    """How often to run the command, and what to do if it fails."""

    warmup: int = param(
        3,
        short="-w",
        metavar="<int>",
        minimum=0,
        help="Run the command <int> times as a warm-up before it is timed.",
    )
    repeat: int = param(
        10,
        short="-r",
        metavar="<int>",
        minimum=1,
        help="Time the command <int> times.",
    )
    timeout: float = common.timeout()
    ignore_failure: bool = param(
        False,
        short="-i",
        help="Go on if the command fails, and record the `exitcode` of each run (128 plus the number of the "
        "signal that killed it).",
    )


class TimeCollector:
    """Measures real, user and system time of whole runs of a command, in seconds."""

    name: ClassVar[str] = "time"
    help: ClassVar[str] = "Measures the real, user and system time of whole runs of a command."
    Params: ClassVar[type] = TimeParams

    def collect(self, run: Run, params: TimeParams, ctx: CollectContext) -> Profile:
        """Run the command `warmup + repeat` times, one after the other, and time the last `repeat` of them.

        :raises JobFailed: where the command cannot be started, fails (unless the parameters ignore that), or
            takes longer than the timeout.
        """
        with Execution(run, ctx.scratch, params.timeout) as execution:
            _repeat(execution, params.warmup, "warming up", "warm-up", params, ctx)
            samples = _repeat(execution, params.repeat, f"timing {run}", "run", params, ctx)
        return self.make_profile(run, samples, params)

    def make_profile(self, run: Run, samples: Sequence[RunSample], params: TimeParams) -> Profile:
        """The profile of runs that were timed, in their order; also by others than this collector."""
        profile = new_profile(run, COLLECTOR_TYPE, COLLECTOR_DEFAULT_UNITS, self.name, to_mapping(params))
        profile.update_resources(_resources(run.cmd, samples, params.ignore_failure))
        if any(sample.waited for sample in samples):
            profile["collector_info"]["waited"] = [round(sample.waited, 6) for sample in samples]
        return profile


def _repeat(
    execution: Execution, times: int, activity: str, noun: str, params: TimeParams, ctx: CollectContext
) -> list[RunSample]:
    samples = []
    for index in range(times):
        ctx.report(activity, index, times)
        sample = execution.run()
        if sample.status and not params.ignore_failure:
            which = f"{noun} {index + 1} of {times}"
            raise failed(execution.command, sample.status, execution.last_errors(), IGNORE_FAILURE, which)
        samples.append(sample)
    if times:
        ctx.report(activity, times, times)
    return samples


def _resources(uid: str, samples: Sequence[RunSample], with_exitcode: bool) -> list[dict[str, Any]]:
    resources = []
    for order, sample in enumerate(samples, 1):
        for subtype, amount in (("real", sample.real), ("user", sample.user), ("sys", sample.system)):
            resource: dict[str, Any] = {"amount": amount, "type": "time", "subtype": subtype}
            resource |= {"uid": uid, "order": order}
            if with_exitcode:
                resource["exitcode"] = exit_status(sample.status)
            resources.append(resource)
    return resources


PLUGIN = TimeCollector
