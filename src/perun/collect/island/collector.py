"""The island collector: runs a Python program in an island, and makes a profile of what that recorded."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from perun.collect._common.interpreter import program_of, succeeds
from perun.collect._common.profiles import new_profile
from perun.collect._common.runs import completed, require_recorded, shortfalls
from perun.collect.island import profile as parts
from perun.collect.island.joining import timeline_region
from perun.collect.island.params import IslandParams
from perun.errors import CollectorUnavailable, PerunError
from perun.island import opening
from perun.island.engine import words_of
from perun.island.program_runner import Program, limits_of
from perun.plugin.api import CollectContext, Run
from perun.plugin.params import to_mapping
from perun.process.execution import Execution, Sample
from perun.profile.factory import Profile
from perun.profile.island import TIMELINE, TYPE

if TYPE_CHECKING:
    from perun.island.opening import Recorded

COLLECTOR_TYPE: Final = TYPE
COLLECTOR_DEFAULT_UNITS: Final = {
    "time": "s", "cpu": "s", "stopped": "s", "sleep": "s", "disk": "B", "net": "B", "random": "B",
}  # fmt: skip
_SUPPORTS: Final = "import sys; sys.exit(sys.version_info < (3, 9))"
_OTHERS: Final = "perun collect trace records programs of other languages"


class IslandCollector:
    """Records each call of a Python program to files, sockets, sleeping, locks and others.

    Each resource is what one thread did with one object: how much, in how many calls, and how long. The
    seconds of all resources of a thread add up to its life.
    """

    name: ClassVar[str] = "island"
    help: ClassVar[str] = (
        "Records what a Python program uses, call by call, as of files and sockets, and where its time went."
    )
    Params: ClassVar[type] = IslandParams

    def collect(self, run: Run, params: IslandParams, ctx: CollectContext) -> Profile:
        """Run the command `repeat` times, each in an island of its own.

        :raises UsageError: where the command is no Python program, or a limit is none.
        :raises CollectorUnavailable: where its interpreter is too old.
        :raises JobFailed: where the command cannot be started, or fails (unless the parameters ignore that).
        :raises Interrupted: where the user stops a run; it has the profile of what was recorded by then.
        """
        limits_of(params)  # refuses a wrong one before anything is run
        builder = _Builder(run, params)
        for number in range(1, params.repeat + 1):
            ctx.report(f"recording {run}", number - 1, params.repeat)
            folder = ctx.scratch / "island"
            shutil.rmtree(folder, ignore_errors=True)
            sample = _record(run, params, folder, ctx)
            builder.add(_opened(folder, sample), sample)
            if sample.early:
                break
        ctx.report(f"recording {run}", params.repeat, params.repeat)
        return builder.profile(ctx)


class _Builder:
    """Makes the profile of the runs."""

    def __init__(self, run: Run, params: IslandParams) -> None:
        self._run = run
        self._params = params
        self._shown = parts.shown_objects(run.cwd)
        self._resources: list[dict[str, Any]] = []
        self._units: dict[tuple[str, str], str] = {}
        self._facts: dict[str, Any] = {}
        self._timeline: dict[str, Any] | None = None
        self._samples: list[Sample] = []

    def add(self, opened: Recorded, sample: Sample) -> None:
        """Take what one run recorded; its timeline only if it is the first."""
        self._samples.append(sample)
        order = len(self._samples)
        rows = parts.rows_of(opened.usage, opened.processes, self._shown)
        self._units |= {(row.type, row.subtype): row.unit for row in rows}
        self._resources += parts.times_of(str(self._run), order, opened)
        self._resources += parts.resources_of(rows, order)
        if order == 1:
            self._facts = parts.facts_of(opened)
            if self._params.timeline_entries:
                self._timeline = timeline_region(opened, self._params.timeline_entries, self._shown)

    def profile(self, ctx: CollectContext) -> Profile:
        """The profile of all runs.

        :raises Interrupted: where the user stopped the last one.
        """
        params = to_mapping(self._params)
        units = parts.units_of(self._units)
        profile = new_profile(self._run, COLLECTOR_TYPE, units, IslandCollector.name, params)
        profile["island"] = {"runs": len(self._samples), **self._facts}
        if self._timeline is not None:
            profile[TIMELINE] = self._timeline
        profile.update_resources(self._resources, columns=parts.NUMBERS)
        for note in self._facts["notes"]:
            ctx.note(note)
        last = self._samples[-1]
        return completed(profile, last, shortfalls(last, self._params.timeout))


def _record(run: Run, params: IslandParams, folder: Path, ctx: CollectContext) -> Sample:
    """Run the command once, and refuse it if it failed."""
    program = Program(*program_of(run, "the collector island", _OTHERS))
    engine = words_of(program, params, folder)
    once = params.repeat == 1
    with Execution(run, ctx.scratch, params.timeout, engine=engine, single_run=once) as execution:
        sample = execution.record()
        if sample.status and not any(folder.glob(f"{opening.PREFIX}*")):
            _require_support(run, program.python)
        require_recorded(run, sample, execution.last_errors(), ignore_failure=params.ignore_failure)
        return sample


def _require_support(run: Run, python: str) -> None:
    """Refuse an interpreter that cannot load the recorder.

    :raises CollectorUnavailable: where it is none that can.
    """
    if not succeeds(_SUPPORTS, run, python):
        raise CollectorUnavailable(
            f"the collector island needs Python 3.9 or newer, which {python} is not",
            "run the program with a newer Python",
        )


def _opened(folder: Path, sample: Sample) -> Recorded:
    """What was recorded.

    :raises JobFailed: where nothing was, but by an interruption, which goes on then.
    """
    try:
        return opening.read(folder)
    except PerunError:
        if sample.interruption is not None:
            raise sample.interruption from None
        raise
