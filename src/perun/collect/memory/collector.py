"""The memory collector: runs the command with the recorder, and makes a profile of what it recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from perun.collect._common import params as common
from perun.errors import JobFailed
from perun.plugin.api import CollectContext, Readiness, Run
from perun.plugin.params import param, to_mapping

if TYPE_CHECKING:
    from perun.collect.memory.analysis import Analysis, Events
    from perun.collect.memory.places import Places, Site
    from perun.collect.memory.profile import Process, Resources
    from perun.collect.memory.python import PythonRecording
    from perun.collect.memory.records import Recording
    from perun.process.execution import Execution, Sample
    from perun.profile.factory import Profile
    from perun.profile.incomplete import Incomplete

    Recorded = Recording | PythonRecording

COLLECTOR_TYPE: Final = "memory"
COLLECTOR_DEFAULT_UNITS: Final = {"memory": "B"}
LIBRARY: Final = Path(__file__).with_name("libperun_memory.so")
"""The recorder, which the build puts beside this module."""
SAMPLING: Final = 0.025
"""Default seconds of a snapshot, from the example of manual 4.1.2."""
MAX_SNAPSHOTS: Final = 256
_SECOND: Final = 1_000_000_000
_WHAT: Final = "the recorder of allocations"
_SYMBOLISER: Final = "install one with: apt-get install binutils"


@dataclass(frozen=True)
class MemoryParams:
    """What is recorded and shown."""

    sampling: float = param(
        0.0,
        short="-s",
        metavar="<sampling>",
        minimum=0,
        help="Sets the sampling interval for profiling the allocations. I.e. memory snapshots will be "
        f"collected each <sampling> seconds. 0 is {SAMPLING:g} seconds, and longer for a long run.",
    )
    no_source: tuple[str, ...] = param(
        (),
        metavar="<no_source>",
        help="Will exclude allocations done from <no_source> file during the profiling.",
    )
    no_func: tuple[str, ...] = param(
        (),
        metavar="<no_func>",
        help="Will exclude allocations done by <no_func> function during the profiling.",
    )
    all: bool = param(
        False,
        short="-a",
        help="Will record the full trace for each allocation, i.e. it will include all allocators and even "
        "unreachable records.",
    )
    raw: bool = param(
        False, help="Keep every single event, instead of sums by call stack and snapshot."
    )
    unwind: str = param(
        "auto",
        choices=("auto", "libunwind", "fp", "tables", "none"),
        help="How call stacks are found: by libunwind, by frame pointers (fp; compile with "
        "-fno-omit-frame-pointer), by the unwind tables of the program, or not at all.",
    )
    follow_children: bool = param(False, help="Also record the processes that the command starts.")
    python: bool = param(
        False,
        help="The command is a Python program: record what its objects and its libraries allocate, with the "
        "functions of Python as call stacks. Needs memray where the program's packages are.",
    )
    ignore_failure: bool = common.ignore_failure()
    timeout: float = common.timeout(kept=True)


class MemoryCollector:
    """Records allocations of a dynamically linked program by a library that is loaded before all others.

    Every resource is the memory that one call stack allocated within one snapshot; further ones sum up
    functions and the program: what was allocated, what of it was live at the peak, and what leaked.

    :param library: the recorder, where it does not lie beside this module.
    """

    name: ClassVar[str] = "memory"
    help: ClassVar[str] = (
        "Generates `memory` performance profile, capturing memory allocations of different types along with "
        "target address and full call trace."
    )
    Params: ClassVar[type] = MemoryParams

    def __init__(self, library: Path | None = None) -> None:
        self._library = library or LIBRARY

    def readiness(self, environ: Mapping[str, str]) -> Iterator[Readiness]:
        """Whether the recorder was built, functions can be named, and Python programs be recorded."""
        from perun.collect._common import native
        from perun.collect.memory.symbols import find_tool

        recorder = native.readiness(self._library, _WHAT)
        yield recorder
        if recorder.missing:
            return
        if not find_tool(environ):
            yield Readiness(
                "functions and lines", "neither addr2line nor llvm-symbolizer was found", _SYMBOLISER
            )
        if find_spec("memray") is None:
            from perun.extras import install_command

            hint = f"install it where the measured Python is: {install_command('python-memory')}"
            yield Readiness("--python", "memray is not installed here", hint)

    def collect(self, run: Run, params: MemoryParams, ctx: CollectContext) -> Profile:
        """Run the command once, with the recorder.

        :raises CollectorUnavailable: where the recorder was not built.
        :raises JobFailed: where the command cannot be started, fails (unless that is to be ignored), or is of
            a kind that nothing can be recorded of.
        :raises Interrupted: where the user ends the run; with what was recorded until then.
        """
        if params.python:
            return _of_python(run, params, ctx)
        from perun.collect._common import native
        from perun.collect.memory.records import Recording
        from perun.process.execution import Execution

        native.require(self._library, _WHAT)
        file = ctx.scratch / "allocations"
        _remove_recordings(file)
        recorded = run._replace(environ=_environment(run, params, self._library, file))
        ctx.report(f"recording {run}", 0, 0)
        with Execution(recorded, ctx.scratch, params.timeout, once=True) as execution:
            sample = _recorded(execution, run, params)
            if not file.exists():
                raise sample.interruption or _nothing_recorded(execution, sample)
        ctx.report("finding functions and lines", 0, 0)
        return _Analyst(run, params, ctx).profile([Recording(path) for path in _recordings(file)], sample)


def _of_python(run: Run, params: MemoryParams, ctx: CollectContext) -> Profile:
    """Run a Python program once, under memray."""
    from perun.collect._common.interpreter import program_of
    from perun.collect.memory.python import prepared, recordings
    from perun.process.execution import Execution

    file = ctx.scratch / "allocations"
    _remove_recordings(file)
    recorded = prepared(run, file, params.sampling or SAMPLING, params.follow_children)
    ctx.report(f"recording {run}", 0, 0)
    with Execution(recorded, ctx.scratch, params.timeout, once=True) as execution:
        sample = _recorded(execution, run, params)
    if not file.exists() and sample.interruption is not None:
        raise sample.interruption
    ctx.report("reading the recording", 0, 0)
    return _Analyst(run, params, ctx).profile(recordings(file, program_of(run).python, run), sample)


def _recorded(execution: Execution, run: Run, params: MemoryParams) -> Sample:
    """Run the command, whose recording may be of a part of the run."""
    from perun.collect._common.runs import require_recorded

    sample = execution.record()
    require_recorded(run, sample, execution.last_errors(), ignore_failure=params.ignore_failure)
    return sample


class _Analyst:
    """Makes a profile of the files that the recorder left."""

    def __init__(self, run: Run, params: MemoryParams, ctx: CollectContext) -> None:
        from perun.collect.memory.places import Places
        from perun.collect.memory.symbols import Symboliser, find_tool

        self._run = run
        self._params = params
        self._ctx = ctx
        self._tool = find_tool(run.environ)
        self._places: Places = Places(Symboliser(self._tool, ctx.cache), run.cwd)
        self._notes: list[str] = []

    def profile(self, recordings: Sequence[Recorded], sample: Sample) -> Profile:
        from perun.collect._common.runs import closed
        from perun.collect.memory.places import readable
        from perun.collect.memory.profile import UNITS, Shape, resources
        from perun.profile.factory import Profile

        processes = self._processes(recordings)
        program = readable(os.path.basename(self._run.command().argv[0]))
        made = resources(processes, Shape(self._params.all, not self._params.sampling), program)
        if made.shortened:
            self._notes.append(
                f"the traces of the {made.shortened} smallest call stacks were shortened to keep the "
                "profile small; --all keeps them whole"
            )
        self._note_what_is_missing(recordings, sample)
        profile = Profile(
            {
                "header": {
                    "type": COLLECTOR_TYPE,
                    "units": dict(UNITS),
                    "cmd": self._run.cmd,
                    "args": self._run.args,
                    "workload": self._run.workload,
                },
                "collector_info": {
                    "name": MemoryCollector.name,
                    "params": to_mapping(self._params),
                },
                "postprocessors": [],
                "memory": self._summary(recordings[0], processes, sample, made),
            }
        )
        profile["resource_type_map"] = made.regions.constants
        profile["resources"] = made.regions.resources
        for note in self._notes:
            self._ctx.note(note)
        return closed(profile, sample, self._lacks(recordings, sample))

    def _lacks(self, recordings: Sequence[Recorded], sample: Sample) -> list[Incomplete]:
        from perun.collect._common.runs import shortfalls

        lost = sum(recording.end.lost + recording.end.skipped for recording in recordings)
        return shortfalls(sample, self._params.timeout, lost, "events")

    def _processes(self, recordings: Sequence[Recorded]) -> list[Process]:
        """The replayed processes; of several, the peak is their joint one."""
        from perun.collect.memory import joint_peak
        from perun.collect.memory.analysis import Analysis

        sampling, first = self._params.sampling, recordings[0]
        analyses = [
            Analysis(
                round((sampling or SAMPLING) * _SECOND),
                0 if sampling else MAX_SNAPSHOTS,
                keep=self._params.raw,
            )
            for _ in recordings
        ]
        joint_peak.replay(
            analyses,
            [self._events(recording, first) for recording in recordings],
            [partial(self._end, recording, first) for recording in recordings],
        )
        return [
            self._process(recording, analysis)
            for recording, analysis in zip(recordings, analyses, strict=True)
        ]

    def _events(self, recording: Recorded, first: Recorded) -> Iterator[Events]:
        """The events of a process, by the clock of the first one."""
        for events in recording.pieces():
            # Python's processes go by one clock already.
            shift = 0 if self._params.python else recording.started - first.started
            yield events.replace(time=events.time + shift) if shift else events

    @staticmethod
    def _end(recording: Recorded, first: Recorded) -> int:
        """When the process ended, by the clock of the first one; 0 where only its events tell."""
        from perun.collect.memory.records import Recording

        if not isinstance(recording, Recording):
            return 0
        return recording.started - first.started + recording.duration

    def _process(self, recording: Recorded, analysis: Analysis) -> Process:
        from perun.collect.memory.places import readable
        from perun.collect.memory.profile import Process
        from perun.collect.memory.records import Recording

        whole = self._params.all
        if isinstance(recording, Recording):
            sites = self._places.of(recording, whole=whole)
        else:
            sites = recording.sites(self._places, whole=whole)
        return Process(
            readable(os.path.basename(recording.exe)) or str(recording.pid),
            analysis.rows(),
            analysis.totals(),
            [None if site is None or self._is_excluded(site) else site for site in sites],
            analysis.interval,
            analysis.single_events() if self._params.raw else None,
        )

    def _is_excluded(self, site: Site) -> bool:
        source, function = site.uid.source, site.uid.function
        plain = function.partition("(")[0]
        return any(
            source == name or source.endswith("/" + name.lstrip("/")) for name in self._params.no_source
        ) or any(name in (function, plain) for name in self._params.no_func)

    def _note_what_is_missing(self, recordings: Sequence[Recorded], sample: Sample) -> None:
        from perun.collect.memory.places import readable

        notes = self._notes
        first = recordings[0]
        for recording in recordings:
            notes += [note for note in map(readable, recording.notes) if note not in notes]
            end = recording.end
            if end.error:
                notes.append(
                    f"the recording stopped before the end of the program ({os.strerror(end.error)}): "
                    f"{end.lost} events are missing"
                )
            elif end.skipped:
                notes.append(f"{end.skipped} allocations in signal handlers are missing")
        if self._params.python:
            pass  # the interpreter knows its functions and lines
        elif not self._tool:
            notes.append(
                "neither addr2line nor llvm-symbolizer was found, so functions and lines are not known; "
                + _SYMBOLISER
            )
        elif self._places.without_lines and not self._params.all:
            names = sorted(readable(os.path.basename(path)) for path in self._places.without_lines)
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            notes.append(
                f"{shown}: no debug information, so sources and lines are not known; compile with -g, "
                "or install the package with the debug symbols"
            )
        if self._params.unwind not in ("auto", first.unwinder) and not self._params.python:
            hint = "; install it with: apt-get install libunwind8" * (self._params.unwind == "libunwind")
            notes.append(f"call stacks were found by {first.unwinder}, not by {self._params.unwind}{hint}")
        early = self._early_end(first, sample)
        if early:
            notes.append(f"the run ended early: it {early}; the profile holds what was recorded until then")

    def _early_end(self, first: Recorded, sample: Sample) -> str:
        """How the run ended early, in words; empty where it ended normally."""
        from perun.collect._common.runs import early_end
        from perun.collect.memory.records import State

        early = early_end(sample, self._params.timeout)
        if not early and first.end.state == State.RUNNING:
            return "executed another program, or ended without the C library"
        return early

    def _summary(
        self, first: Recorded, processes: Sequence[Process], sample: Sample, made: Resources
    ) -> dict[str, Any]:
        """The region `memory` of the profile: what is known of the whole run."""
        totals = [process.totals for process in processes]
        peak = max(totals, key=lambda one: one.peak)
        early = self._early_end(first, sample)
        return {
            "unwinder": first.unwinder,
            "ended": f"early: {early}" if early else "normally",
            "duration": round(sample.real, 6),
            "sampling": made.interval / _SECOND,
            "events": sum(one.events for one in totals),
            "allocations": sum(one.allocations for one in totals),
            "releases": sum(one.releases for one in totals),
            "allocated": sum(one.allocated for one in totals),
            "peak": sum(one.peak for one in totals),
            "peak-time": round(peak.peak_time / _SECOND, 6),
            "live-at-end": sum(one.leaked for one in totals),
            "leaked": made.leaked,
            "leaked-blocks": made.leaked_blocks,
            "temporary": sum(one.temporary for one in totals),
            "processes": len(totals),
            "notes": list(self._notes),
        }


def _environment(run: Run, params: MemoryParams, library: Path, file: Path) -> dict[str, str]:
    environ = dict(run.environ)
    environ["LD_PRELOAD"] = ":".join(filter(None, (str(library), environ.get("LD_PRELOAD", ""))))
    environ["PERUN_MEMORY_FILE"] = str(file.absolute())
    environ["PERUN_MEMORY_UNWIND"] = params.unwind
    if params.follow_children:
        environ["PERUN_MEMORY_FOLLOW"] = "1"
    return environ


def _recordings(file: Path) -> list[Path]:
    """The recording of the command, then those of its children, by their process number."""
    children = [path for path in file.parent.glob(f"{file.name}.*") if path.suffix != ".tail"]
    return [file, *sorted(children, key=lambda path: [int(part) for part in path.name.split(".")[1:]])]


def _remove_recordings(file: Path) -> None:
    for path in file.parent.glob(f"{file.name}*"):
        path.unlink()


def _nothing_recorded(execution: Execution, sample: Sample) -> JobFailed:
    from perun.process.finding import find_executable
    from perun.process.outcome import outcome

    run = execution.command
    path = find_executable(run.command().argv[0], run.cwd, run.environ)
    reason, hint = _why_not(path)
    return JobFailed(f"no allocation was recorded: {path} {reason} (it {outcome(sample.status)})", hint)


def _why_not(path: str) -> tuple[str, str]:
    """Why the recorder cannot be loaded into a program, and what to do about it."""
    import struct

    from perun.collect._common.elf import read_elf

    elf = read_elf(path)
    status = os.stat(path)
    foreign_set_id = status.st_mode & 0o6000 and (status.st_uid, status.st_gid) != (
        os.geteuid(),
        os.getegid(),
    )
    if elf is None:
        return "is a script whose interpreter is not a program", "measure the program that the script starts"
    if not elf.dynamic:
        return "is statically linked, so the recorder cannot be loaded into it", "link it without -static"
    if elf.bits != 8 * struct.calcsize("P"):
        return f"is a {elf.bits}-bit program", "build it for the same architecture as Python"
    if foreign_set_id or "security.capability" in _attributes(path):
        return (
            "runs with other privileges than yours (setuid, capabilities), so the recorder is not loaded",
            "measure a copy without these privileges, or run Perun as the user of the program",
        )
    return (
        "did not load the recorder, or the recorder could not write its file",
        "check whether the program, or a script that starts it, changes LD_PRELOAD",
    )


def _attributes(path: str) -> list[str]:
    try:
        return os.listxattr(path)
    except OSError:
        return []
