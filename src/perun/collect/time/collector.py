"""The time collector: warms the command up, times it, and makes a profile of the times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from perun.collect._common import params as common
from perun.collect._common.runs import ALL_THE_SAME
from perun.plugin.api import CollectContext, Run
from perun.plugin.params import param, to_mapping
from perun.process.execution import Execution, Sample
from perun.process.outcome import exit_status, failed
from perun.profile.factory import Profile

COLLECTOR_TYPE: Final = "time"
COLLECTOR_DEFAULT_UNITS: Final = {"time": "s"}


@dataclass(frozen=True)
class TimeParams:
    """How often to run the command, and what to do where it fails."""

    warmup: int = param(
        3,
        short="-w",
        metavar="<int>",
        minimum=0,
        help="Before the actual timing, the collector will execute <int> warm-up executions.",
    )
    repeat: int = param(
        10,
        short="-r",
        metavar="<int>",
        minimum=1,
        help="The timing of the given binaries will be repeated <int> times.",
    )
    timeout: float = common.timeout()
    ignore_failure: bool = param(
        False,
        short="-i",
        help="Keep measuring where the command fails, and record the `exitcode` of each run "
        "(128 and the number of the signal where one killed it).",
    )


class TimeCollector:
    """Measures real, user and system time of whole runs of a command, in seconds."""

    name: ClassVar[str] = "time"
    help: ClassVar[str] = (
        "Generates `time` performance profile, capturing overall running times of a command."
    )
    Params: ClassVar[type] = TimeParams

    def collect(self, run: Run, params: TimeParams, ctx: CollectContext) -> Profile:
        """Run the command `warmup + repeat` times, one after the other, and time the last `repeat` of them.

        :raises JobFailed: where the command cannot be started, fails (unless that is to be ignored) or
            takes longer than the timeout.
        """
        with Execution(run, ctx.scratch, params.timeout) as execution:
            _repeat(execution, params.warmup, "warming up", "warm-up", params, ctx)
            samples = _repeat(execution, params.repeat, f"timing {run}", "run", params, ctx)
        return self.make_profile(run, samples, params)

    def make_profile(self, run: Run, samples: Sequence[Sample], params: TimeParams) -> Profile:
        """The profile of runs that were timed, in their order; also by others than this collector."""
        profile = Profile(
            {
                "header": {
                    "type": COLLECTOR_TYPE,
                    "units": dict(COLLECTOR_DEFAULT_UNITS),
                    "cmd": run.cmd,
                    "args": run.args,
                    "workload": run.workload,
                },
                "collector_info": {"name": self.name, "params": to_mapping(params)},
                "postprocessors": [],
            }
        )
        profile.update_resources(_resources(run.cmd, samples, params.ignore_failure))
        return profile


def _repeat(
    execution: Execution, times: int, activity: str, noun: str, params: TimeParams, ctx: CollectContext
) -> list[Sample]:
    samples = []
    for index in range(times):
        ctx.report(activity, index, times)
        sample = execution.run()
        if sample.status and not params.ignore_failure:
            which = f"{noun} {index + 1} of {times}"
            raise failed(execution.command, sample.status, execution.last_errors(), ALL_THE_SAME, which)
        samples.append(sample)
    if times:
        ctx.report(activity, times, times)
    return samples


def _resources(uid: str, samples: Sequence[Sample], with_exitcode: bool) -> list[dict[str, Any]]:
    resources = []
    for order, sample in enumerate(samples, 1):
        for subtype, amount in (("real", sample.real), ("user", sample.user), ("sys", sample.system)):
            resource: dict[str, Any] = {"amount": amount, "type": "time", "subtype": subtype}
            resource |= {"uid": uid, "order": order}
            if with_exitcode:
                resource["exitcode"] = exit_status(sample.status)
            resources.append(resource)
    return resources
