"""The memory collector: runs the command with the recorder, and makes a profile of the recording."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from perun.collect._common import runs
from perun.collect._common import runs as common
from perun.collect._common.runs import (
    CONFINED,
    completed,
    early_end,
    ended,
    has_other_privileges,
    instead,
    require_recorded,
    shortfalls,
    stopped_because,
)
from perun.core.errors import JobFailed, UsageError
from perun.core.wording import counted, listed
from perun.native.symbols import Debuginfod, debug_packages
from perun.plugin.api import CollectContext, Readiness, Run
from perun.plugin.params import param, to_mapping
from perun.profile.memory import LEFT_OUT

if TYPE_CHECKING:
    from perun.collect.memory.analysis import AllocationEvents, Analysis, HeapTotals
    from perun.collect.memory.native import NativeAnalysis
    from perun.collect.memory.places import AllocationSite, StackTraces
    from perun.collect.memory.profile import MemoryResources, ProcessReplay
    from perun.collect.memory.python import PythonRecording
    from perun.collect.memory.records import MemoryRecording
    from perun.core.process.execution import Execution, RunSample
    from perun.profile.factory import Profile
    from perun.profile.incomplete import Incomplete

    Recorded: TypeAlias = MemoryRecording | PythonRecording

COLLECTOR_TYPE: Final = "memory"
COLLECTOR_DEFAULT_UNITS: Final = {"memory": "B"}
LIBRARY: Final = Path(__file__).with_name("libperun_memory.so")
"""The recorder, which the build puts beside this module."""
SAMPLING: Final = 0.025
"""Default length of a snapshot in seconds, from the example of manual 4.1.2."""
MAX_SNAPSHOTS: Final = 256
"""Unless the user chooses the length of snapshots, they become longer so that a profile has no more."""
_SECOND: Final = 1_000_000_000
_RECORDER: Final = "the recorder of allocations"
_ANOTHER_PROGRAM: Final = "executed another program, or ended without the C library"
_SYMBOLISER: Final = "install one with: apt-get install binutils"


@dataclass(frozen=True)
class MemoryParams:
    """What to record, and what the profile keeps of it."""

    sampling: float = param(
        0.0,
        short="-s",
        alias="--snapshot-length",  # elsewhere `--sampling` means one of so many calls
        metavar="<sampling>",
        minimum=0,
        help="The length of a snapshot in seconds: the profile sums up allocations by snapshot. 0 means "
        f"{SAMPLING:g} seconds, or longer for a long run.",
    )
    no_source: tuple[str, ...] = param(
        (),
        metavar="<no_source>",
        help="Leave out what functions of this source file allocate; may be repeated.",
    )
    no_func: tuple[str, ...] = param(
        (),
        metavar="<no_func>",
        help="Leave out what this function allocates; may be repeated.",
    )
    all: bool = param(
        False,
        short="-a",
        help="Keep the full trace of each allocation, with allocators and frames whose source is unknown.",
    )
    raw: bool = param(False, help="Keep every single event, instead of sums by call stack and snapshot.")
    unwind: str = param(
        "auto",
        choices=("auto", "libunwind", "fp", "tables", "none"),
        help="How to find call stacks: by libunwind, by frame pointers (fp; compile with "
        "-fno-omit-frame-pointer), by the unwind tables of the program, or not at all (none).",
    )
    follow_children: bool = param(False, help="Also record the processes that the command starts.")
    reachable: bool = param(
        False,
        help="Also find out at the end which of the blocks that were never released the program can still "
        "reach, and which are lost.",
    )
    python: bool = param(
        False,
        help="Record a Python program: what its objects and libraries allocate, by call stacks of Python "
        "functions. Needs memray in the environment of the program.",
    )
    ignore_failure: bool = common.ignore_failure()
    timeout: float = common.timeout(kept=True)


class MemoryCollector:
    """Records allocations of a dynamically linked program by a preloaded library.

    Each resource is the memory that one call stack allocated within one snapshot. Further resources sum up
    functions and the program: what was allocated, what was live at the peak, and what leaked.
    """

    name: ClassVar[str] = "memory"
    help: ClassVar[str] = (
        "Records the allocations and releases of memory of a program, with their addresses and call stacks."
    )
    Params: ClassVar[type] = MemoryParams

    def __init__(self, library: Path | None = None) -> None:
        """:param library: path of the recorder; by default it is beside this module."""
        self._library = library or LIBRARY

    def readiness(self, environ: Mapping[str, str]) -> Iterator[Readiness]:
        """Whether the recorder was built, and whether a symboliser and memray are installed."""
        from perun.native.symboliser import find_tool

        recorder = runs.readiness(self._library, _RECORDER)
        yield recorder
        if recorder.missing:
            return
        if not find_tool(environ):
            yield Readiness(
                "functions and lines", "neither addr2line nor llvm-symbolizer is installed", _SYMBOLISER
            )
        if find_spec("memray") is None:
            from perun.core.extras import install_command

            hint = f"install it in the environment of the program: {install_command('python-memory')}"
            yield Readiness("--python", "memray is not installed in the environment of Perun", hint)

    def collect(self, run: Run, params: MemoryParams, ctx: CollectContext) -> Profile:
        """Run the command once, with the recorder.

        :raises CollectorUnavailable: where the recorder was not built.
        :raises UsageError: for `reachable` with `python`.
        :raises JobFailed: where the command cannot be started, fails (unless the parameters ignore that), or
            cannot be recorded, e.g. because it is linked statically.
        :raises Interrupted: where the user stops the run; it has the profile of what was recorded by then.
        """
        if params.python:
            if params.reachable:
                raise UsageError(
                    "--reachable searches the memory of C and C++ programs: it does not go with --python",
                    "leave out one of both",
                )
            return _record_python(run, params, ctx)
        from perun.collect.memory.native import load
        from perun.collect.memory.preload import preloaded
        from perun.collect.memory.records import MemoryRecording
        from perun.core.process.execution import Execution

        runs.require(self._library, _RECORDER)
        runs.require_glibc(runs.program_of(run), "records allocations")
        runs.refuse_sanitizer(runs.program_of(run), "record its allocations")
        file = ctx.scratch / "allocations"
        _prepare(file)
        recorded = preloaded(run, self._library, _settings(params, file))
        ctx.report(f"recording {run}", 0, 0)
        with Execution(recorded, ctx.scratch, params.timeout, single_run=True) as execution:
            sample = _record(execution, run, params, file)
            if not file.exists():
                raise sample.interruption or _nothing_recorded(execution, sample, file)
            _require_all(file, sample)
        ctx.report("finding functions and lines", 0, 0)
        recordings = [MemoryRecording(path, load()) for path in _recordings(file)]
        return _ProfileBuilder(run, params, ctx).profile(recordings, sample)


def _record_python(run: Run, params: MemoryParams, ctx: CollectContext) -> Profile:
    """Run a Python program once, under memray."""
    from perun.collect._common.runs import python_program_of
    from perun.collect.memory.python import prepared, recordings
    from perun.core.process.execution import Execution

    file = ctx.scratch / "allocations"
    _prepare(file)
    recorded = prepared(run, file, params.sampling or SAMPLING, params.follow_children)
    ctx.report(f"recording {run}", 0, 0)
    with Execution(recorded, ctx.scratch, params.timeout, single_run=True) as execution:
        sample = _record(execution, run, params, file)
    if not file.exists() and sample.interruption is not None:
        raise sample.interruption
    _require_all(file, sample)
    ctx.report("reading the recording", 0, 0)
    return _ProfileBuilder(run, params, ctx).profile(
        recordings(file, python_program_of(run).python, run), sample
    )


def _record(execution: Execution, run: Run, params: MemoryParams, file: Path) -> RunSample:
    """Run the command, and refuse it if it failed.

    :raises OSError: where it failed and there is no room beside `file`, where its output is kept, too.
    """
    from perun.collect._common.recordings import require_room

    sample = execution.record()
    try:
        require_recorded(run, sample, execution.last_errors(), ignore_failure=params.ignore_failure)
    except JobFailed:
        require_room(file, 1)
        raise
    return sample


class _ProfileBuilder:
    """Makes the profile of a run from the recordings of its processes."""

    def __init__(self, run: Run, params: MemoryParams, ctx: CollectContext) -> None:
        from perun.collect.memory.places import StackTraces
        from perun.native.symboliser import Symboliser, find_second, find_tool

        self._run = run
        self._params = params
        self._ctx = ctx
        self._tool, second = find_tool(run.environ), find_second(run.environ)
        self._debuginfod = Debuginfod(run.environ, ctx.cache / "debuginfod" if ctx.cache else None)
        symboliser = Symboliser(self._tool, ctx.cache, second)
        self._places: StackTraces = StackTraces(symboliser, run.cwd, self._debuginfod)
        self._notes: list[str] = []

    def profile(self, recordings: Sequence[Recorded], sample: RunSample) -> Profile:
        from perun.collect._common.runs import new_profile
        from perun.collect.memory.places import readable
        from perun.collect.memory.profile import UNITS, Shape, resources

        processes = self._processes(recordings)
        program = readable(os.path.basename(self._run.command().argv[0]))
        found = resources(processes, Shape(self._params.all, not self._params.sampling), program)
        if found.shortened:
            smallest = counted(found.shortened, "smallest call stack")
            self._notes.append(
                f"the profile shortens the traces of the {smallest} to stay small; --all keeps them whole"
            )
        self._note_what_is_missing(recordings, sample)
        params = to_mapping(self._params)
        profile = new_profile(self._run, COLLECTOR_TYPE, UNITS, MemoryCollector.name, params)
        profile["memory"] = self._summary(recordings[0], processes, sample, found)
        profile["resource_type_map"] = found.regions.constants
        profile["resources"] = found.regions.resources
        for note in self._notes:
            self._ctx.note(note)
        return completed(profile, sample, self._lacks(recordings, sample))

    def _lacks(self, recordings: Sequence[Recorded], sample: RunSample) -> list[Incomplete]:
        lost = sum(recording.end.lost + recording.end.skipped for recording in recordings)
        return shortfalls(sample, self._params.timeout, lost, "events")

    def _processes(self, recordings: Sequence[Recorded]) -> list[ProcessReplay]:
        """The processes after their replay; several have their joint peak."""
        from perun.collect.memory import table
        from perun.collect.memory.analysis import Analysis
        from perun.collect.memory.native import NativeAnalysis, load

        sampling, first = self._params.sampling, recordings[0]
        interval, snapshots = round((sampling or SAMPLING) * _SECOND), 0 if sampling else MAX_SNAPSHOTS
        if len(recordings) == 1 and not self._params.raw and (library := load()):
            analysis = NativeAnalysis(library, interval, snapshots)
            for events in first.pieces(reuse=True):
                analysis.add(events)
            return [self._process(first, analysis)]
        analyses = [Analysis(interval, snapshots, keep=self._params.raw) for _ in recordings]
        table.replay(
            analyses,
            [self._events(recording, first) for recording in recordings],
            [partial(self._end, recording, first) for recording in recordings],
        )
        return [
            self._process(recording, analysis)
            for recording, analysis in zip(recordings, analyses, strict=True)
        ]

    def _events(self, recording: Recorded, first: Recorded) -> Iterator[AllocationEvents]:
        """The events of a process, with times since the start of the first process."""
        for events in recording.pieces():
            # Recordings of Python already have the times of one clock.
            shift = 0 if self._params.python else recording.started - first.started
            yield events.replace(time=events.time + shift) if shift else events

    @staticmethod
    def _end(recording: Recorded, first: Recorded) -> int:
        """When the process ended, in ns since the start of the first process; 0 if only its events tell."""
        from perun.collect.memory.records import MemoryRecording

        if not isinstance(recording, MemoryRecording):
            return 0
        return recording.started - first.started + recording.duration

    def _process(self, recording: Recorded, analysis: Analysis | NativeAnalysis) -> ProcessReplay:
        from perun.collect.memory.analysis import Analysis
        from perun.collect.memory.events import reached
        from perun.collect.memory.places import SYSTEM, readable
        from perun.collect.memory.profile import ProcessReplay
        from perun.collect.memory.records import MemoryRecording

        whole = self._params.all
        if isinstance(recording, MemoryRecording):
            sites = self._places.of(recording, whole=whole)
        else:
            sites = recording.sites(self._places, whole=whole)
        return ProcessReplay(
            readable(os.path.basename(recording.exe)) or str(recording.pid),
            analysis.rows(),
            analysis.totals(),
            [None if self._is_excluded(site or SYSTEM) else site or SYSTEM for site in sites],
            analysis.interval,
            analysis.single_events() if isinstance(analysis, Analysis) and self._params.raw else None,
            reached(analysis.live(), reach) if (reach := recording.reach) and reach.complete else None,
        )

    def _is_excluded(self, site: AllocationSite) -> bool:
        source, function = site.uid.source, site.uid.function
        plain = function.partition("(")[0]
        return any(
            source == name or source.endswith("/" + name.lstrip("/")) for name in self._params.no_source
        ) or any(name in (function, plain) for name in self._params.no_func)

    def _note_what_is_missing(self, recordings: Sequence[Recorded], sample: RunSample) -> None:
        from perun.collect.memory.places import readable

        notes = self._notes
        first = recordings[0]
        for recording in recordings:
            found = map(readable, (*recording.notes, *self._unseen(recording)))
            notes += [note for note in found if note not in notes]
            end = recording.end
            if end.error:
                notes.append(
                    f"the recording stopped before the end of the program ({stopped_because(end.error)}); "
                    f"the profile lacks {counted(end.lost, 'event')}"
                )
            elif end.skipped:
                skipped = counted(end.skipped, "allocation")
                notes.append(f"the profile lacks {skipped} in signal handlers that interrupted the recorder")
        if self._params.python:
            pass  # the recording has functions and lines
        elif not self._tool:
            notes.append(
                "functions and lines are unknown, because neither addr2line nor llvm-symbolizer is "
                "installed; " + _SYMBOLISER
            )
        elif self._places.without_lines and not self._params.all:
            notes.append(self._names_missing())
        notes += self._debuginfod.notes
        if self._params.unwind not in ("auto", first.unwinder) and not self._params.python:
            hint = "; install it with: apt-get install libunwind8" * (self._params.unwind == "libunwind")
            wanted = self._params.unwind
            notes.append(f"the recorder found call stacks by {first.unwinder}, not by {wanted}{hint}")
        if self._params.reachable:
            notes += _unknown_reach(recordings)
        early = self._early_end(first, sample)
        if early:
            other = early == _ANOTHER_PROGRAM and not self._params.follow_children
            hint = "; --follow-children also records a program that it executed" * other + instead(sample)
            notes.append(
                f"the run ended early: it {early}; the profile holds what was recorded until then{hint}"
            )

    def _names_missing(self) -> str:
        """The note on files without debug information, and what would bring it."""
        from perun.collect.memory.places import readable

        places = self._places
        names = sorted(readable(os.path.basename(path)) for path in places.without_lines)
        what = "names of functions, sources and lines" if places.without_names else "sources and lines"
        packages = debug_packages(sorted(places.without_lines), self._run.environ)
        package = listed(packages) if packages else "the package with the debug symbols"
        return (
            f"without debug information, {what} of {listed(names)} are unknown; compile with -g, or install "
            f"{package}"
        )

    @staticmethod
    def _unseen(recording: Recorded) -> Iterator[str]:
        """Notes on allocators that the recorder of C programs cannot see."""
        from perun.collect.memory import preload
        from perun.collect.memory.places import is_runtime
        from perun.collect.memory.records import MemoryRecording

        if isinstance(recording, MemoryRecording):
            paths = {module.path for module in recording.modules if not is_runtime(module.path)}
            yield from preload.notes(recording.exe, sorted(paths - {recording.exe}))

    def _early_end(self, first: Recorded, sample: RunSample) -> str:
        """How the run ended early, in words; empty if it ended normally."""
        from perun.collect.memory.records import ExitState

        early = early_end(sample, self._params.timeout)
        if not early and first.end.state == ExitState.RUNNING and first.end.error != CONFINED:
            return _ANOTHER_PROGRAM
        return early

    def _summary(
        self, first: Recorded, processes: Sequence[ProcessReplay], sample: RunSample, found: MemoryResources
    ) -> dict[str, Any]:
        """The region `memory` of the profile: totals of the whole run, sizes in bytes, times in seconds."""
        totals = [process.totals for process in processes]
        peak = max(totals, key=lambda one: one.peak)
        early = self._early_end(first, sample)
        # The sums are those of the resources, so that every view comes to the same numbers.
        return {
            "unwinder": first.unwinder,
            "ended": f"early: {early}" if early else "normally",
            "duration": round(sample.real, 6),
            "sampling": found.interval / _SECOND,
            "events": sum(one.events for one in totals),
            "releases": sum(one.releases for one in totals),
            **found.sums,
            "peak-time": round(peak.peak_time / _SECOND, 6),
            "live-at-end": sum(one.leaked for one in totals),
            **({LEFT_OUT: left_out} if (left_out := _left_out(totals, found.sums)) else {}),
            **_reachability(processes),
            "processes": len(totals),
            "notes": list(self._notes),
        }


def _left_out(totals: Sequence[HeapTotals], sums: Mapping[str, int]) -> dict[str, int]:
    """Totals of the run that the resources lack, as `--no-source` and `--no-func` leave something out."""
    names = ("peak", "allocated", "allocations", "temporary")
    lacking = {name: sum(getattr(one, name) for one in totals) - sums[name] for name in names}
    return lacking if any(lacking.values()) else {}


def _unknown_reach(recordings: Sequence[Recorded]) -> Iterator[str]:
    """Notes on what `--reachable` does not tell."""
    unknown = sum(recording.reach is None or not recording.reach.complete for recording in recordings)
    unseen = sum(recording.reach.unseen_threads for recording in recordings if recording.reach)
    if unknown:
        processes = "the program" if len(recordings) == 1 else f"{unknown} of the processes"
        yield (
            f"what {processes} could reach at the end is unknown: only a process that ends by exit is "
            "searched, and no forked one that executes no program"
        )
    if unseen:
        yield (
            f"the registers of {counted(unseen, 'thread')} could not be read at the end, because the system "
            "does not allow ptrace; blocks to which only these refer count as lost"
        )


def _reachability(processes: Sequence[ProcessReplay]) -> dict[str, int]:
    """Bytes and blocks of all processes by how they can be reached at the end; empty where unknown."""
    from perun.collect.memory.events import STATES

    known = [process.reached.totals for process in processes if process.reached]
    found = {}
    for name in STATES if known else ():
        found[name] = sum(totals[name][0] for totals in known)
        found[f"{name}-blocks"] = sum(totals[name][1] for totals in known)
    return found


def _settings(params: MemoryParams, file: Path) -> dict[str, str]:
    """The settings of the recorder; see `native/record.h`."""
    settings = {"PERUN_MEMORY_FILE": str(file.absolute()), "PERUN_MEMORY_UNWIND": params.unwind}
    if params.follow_children:
        settings["PERUN_MEMORY_FOLLOW"] = "1"
    if params.reachable:
        settings["PERUN_MEMORY_REACHABLE"] = "1"
    return settings


def _recordings(file: Path) -> list[Path]:
    """The recording of the command, and then those of its child processes in the order of their ids."""
    children = [path for path in file.parent.glob(f"{file.name}.*") if path.suffix[1:].isdecimal()]
    return [file, *sorted(children, key=lambda path: [int(part) for part in path.name.split(".")[1:]])]


def _prepare(file: Path) -> None:
    """Remove earlier recordings, and make the file that recorders remove where one of them gets no room.

    :raises OSError: where there is no room for it.
    """
    from perun.collect.memory.records import WHOLE

    for path in file.parent.glob(f"{file.name}*"):
        path.unlink()
    file.with_name(file.name + WHOLE).touch()


def _require_all(file: Path, sample: RunSample) -> None:
    """Refuse recordings that lack a process whose files the system refused, unless the user stopped the run.

    :raises OSError: where there is still no room for them. :raises JobFailed: where there is some by now.
    """
    from perun.collect._common.recordings import require_room
    from perun.collect.memory.records import ROOM, WHOLE, no_room

    if sample.interruption is None and not file.with_name(file.name + WHOLE).exists():
        require_room(file, ROOM)
        raise no_room(file.parent, "a process that the command started was")


def _nothing_recorded(execution: Execution, sample: RunSample, file: Path) -> JobFailed:
    """
    :raises OSError: where the system refuses the recorder its file: a full disk, a quota, a limit.
    """
    from perun.core.process.command import find_executable

    run = execution.command
    path = find_executable(run.command().argv[0], run.cwd, run.environ)
    reason, hint = _why_not(path, file)
    return JobFailed(
        f"no allocation was recorded: {path} {reason} (it {ended(sample)}{instead(sample)})", hint
    )


def _why_not(path: str, file: Path) -> tuple[str, str]:
    """Why a program did not load the recorder (a text that continues its path), and what to do.

    :raises OSError: where nothing speaks against loading it, but the system refuses it its file.
    """
    import struct

    from perun.collect._common.recordings import require_room
    from perun.collect.memory.records import ROOM
    from perun.native.elf import read_elf

    elf = read_elf(path)
    if elf is None:
        return "is a script that no ELF program interprets", "measure the program that the script starts"
    if not elf.dynamic:
        return "is linked statically, so that it cannot load the recorder", "link it without -static"
    if elf.bits != 8 * struct.calcsize("P"):
        return (
            f"is a {elf.bits}-bit program and cannot load the recorder",
            "build it for the same architecture as Python",
        )
    if has_other_privileges(path):
        return (
            "runs with other privileges than yours (setuid, capabilities), so that it loads no recorder",
            "measure a copy without these privileges, or run Perun as the user of the program",
        )
    require_room(file, ROOM)
    return (
        "did not load the recorder",
        "check whether the program, or a script that starts it, changes LD_PRELOAD",
    )
