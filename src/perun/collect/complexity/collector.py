"""The complexity collector: compiles the program for recording, runs it, and makes a profile of its calls.

What the recording itself adds to the times of calls is measured beside it, on a program of empty functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from perun.collect._calls.calibration import (
    BARE,
    INSTRUMENTED,
    LOOP,
    LOOPED,
    ROUNDS,
    CalibrationCalls,
    CalibrationCosts,
    cost_of,
    empty_call,
    made,
    notes,
    region,
)
from perun.collect._calls.events import Calls
from perun.collect._calls.overhead import CallCost, Overhead, merge
from perun.collect.complexity.build import ComplexityParams
from perun.collect.complexity.records import FunctionAddress, ProcessRecording, processes
from perun.collect.complexity.selection import Selection, select
from perun.core.errors import JobFailed, PerunError
from perun.core.process.execution import Execution, Output
from perun.core.wording import counted
from perun.native.binary import Binary
from perun.plugin.api import CollectContext, Readiness, Run
from perun.plugin.params import to_mapping

if TYPE_CHECKING:
    from collections.abc import Callable

    from perun.collect._calls.profile import CalledFunction
    from perun.collect.complexity.records import Gaps
    from perun.core.process.execution import RunSample
    from perun.profile.factory import Profile


LIBRARY: Final = Path(__file__).with_name("libperun_complexity.so")
"""The runtime, which the build puts beside this module."""
MANY_CALLS: Final = 2_000_000
"""From so many calls on a note says how to make the profile smaller."""
_RUNTIME: Final = "the runtime that records calls"


class ComplexityCollector:
    """Records every call of the functions of a C or C++ program that is compiled for it.

    Each resource is a call: its duration, and the size of the structure that it worked on.
    """

    name: ClassVar[str] = "complexity"
    help: ClassVar[str] = (
        "Records the calls of functions of a C or C++ program that Perun compiles: their times, and the "
        "sizes of the structures that they work on."
    )
    Params: ClassVar[type] = ComplexityParams

    def __init__(self, library: Path | None = None) -> None:
        """:param library: path of the runtime; by default it is beside this module."""
        self._library = library or LIBRARY

    def readiness(self, environ: Mapping[str, str]) -> Iterator[Readiness]:
        """Whether the runtime was built, and whether compilers for C and C++ are installed."""
        from perun.collect._common import runs
        from perun.collect.complexity.build import missing_compiler

        runtime = runs.readiness(self._library, _RUNTIME)
        yield runtime
        if runtime.missing:
            return
        missing, hint = missing_compiler(environ)
        if missing:
            yield Readiness("--files and --build", missing, hint)

    def collect(self, run: Run, params: ComplexityParams, ctx: CollectContext) -> Profile:
        """Build the program if the parameters say so, run it once, and read the recording.

        :raises CollectorUnavailable: where the runtime was not built, or there is no compiler.
        :raises UsageError: where a file, or each function of the rules, does not exist.
        :raises JobFailed: where the program does not compile, cannot be started, fails (unless the parameters
            ignore that), or calls no recorded function.
        :raises Interrupted: where the user stops the run; it has the profile of what was recorded by then.
        """
        from perun.collect._common import runs

        runs.require(self._library, _RUNTIME)
        measured, program = _build(run, params, ctx)
        runs.require_glibc(program, "records calls")
        runs.refuse_sanitizer(program, "record its calls")
        return self._record(run, measured, program, params, ctx)

    def _record(
        self, run: Run, measured: Run, program: str, params: ComplexityParams, ctx: CollectContext
    ) -> Profile:
        from perun.collect._common.recordings import DamagedRecording, require_room
        from perun.collect._common.runs import require_recorded
        from perun.collect.complexity.records import ROOM, ROOM_OF_A_THREAD, processes
        from perun.collect.complexity.selection import select
        from perun.core.process.execution import Execution

        folder = _recordings(run, params, ctx)
        table = ctx.scratch / "table"
        ctx.report("finding functions and sizes", 0, 0)
        selection = select(program, params, ctx, run)
        table.write_bytes(selection.table)

        def recording(run: Run, folder: Path, table: Path) -> Run:
            return run._replace(environ=_environment(run, params, self._library, folder, table))

        corrected = correction(self._library, selection, recording, ctx)
        ctx.report(f"recording {run}", 0, 0)
        measured = recording(measured, folder, table)
        with Execution(measured, ctx.scratch, params.timeout, single_run=True) as execution:
            sample = execution.record()
            errors = execution.last_errors()
            require_recorded(run, sample, errors, ignore_failure=params.ignore_failure)
        ctx.report("reading the calls", 0, 0)
        try:
            found = processes(folder)
        except DamagedRecording:
            require_room(folder, ROOM)
            raise
        if not any(process.places for process in found):
            if sample.interruption is None:
                require_room(folder, ROOM_OF_A_THREAD)
            raise sample.interruption or _nothing_recorded(program, params, sample)
        return _profile(run, params, ctx, found, selection, corrected, sample)


def _build(run: Run, params: ComplexityParams, ctx: CollectContext) -> tuple[Run, str]:
    """Build the program if the parameters say so; return the run to record and the path of its program."""
    import shlex

    from perun.collect.complexity.build import BuildTarget, build_command, build_files
    from perun.core.process.command import find_executable

    whole = any("std::" in rule for rule in params.rules)
    if params.files:
        ctx.report("compiling", 0, 0)
        folder = Path(params.target_dir) if params.target_dir else ctx.scratch / "target"
        target = BuildTarget([Path(file) for file in params.files], params.compile_flags, folder, whole)
        program = str(build_files(target, run.cwd, run.environ))
        rest = shlex.join(run._replace(args="", workload="").command().argv[1:])
        return run._replace(cmd=shlex.quote(program), args=f"{rest} {run.args}".strip()), program
    if params.build:
        ctx.report(f"building with {params.build}", 0, 0)
        build_command(params.build, ctx.scratch / "compilers", run.cwd, run.environ, whole=whole)
        ctx.note(
            f"{params.build} has built the program for recording calls; build it anew before you measure "
            "anything else"
        )
    program = params.binary or run.command().argv[0]
    return run, find_executable(program, run.cwd, run.environ)


def _recordings(run: Run, params: ComplexityParams, ctx: CollectContext) -> Path:
    import shutil

    if params.internal_data_filename:
        folder = run.cwd / params.target_dir / params.internal_data_filename
    else:
        folder = ctx.scratch / "calls"
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for path in (*folder.glob("*.process"), *folder.glob("*.modules"), *folder.glob("*.calls")):
        path.unlink()
    return folder


def _environment(
    run: Run, params: ComplexityParams, library: Path, folder: Path, table: Path
) -> Mapping[str, str]:
    preload = ":".join(filter(None, (str(library), run.environ.get("LD_PRELOAD", ""))))
    return {
        **run.environ,
        "LD_PRELOAD": preload,
        "PERUN_COMPLEXITY_FOLDER": str(folder.absolute()),
        "PERUN_COMPLEXITY_TABLE": str(table.absolute()),
        "PERUN_COMPLEXITY_STORAGE": str(params.internal_storage_size),
    }


def _profile(
    run: Run,
    params: ComplexityParams,
    ctx: CollectContext,
    found: Sequence[ProcessRecording],
    selection: Selection,
    corrected: OverheadCorrection,
    sample: RunSample,
) -> Profile:
    import numpy as np

    from perun.collect._calls.events import UNKNOWN
    from perun.collect._calls.profile import CallTable
    from perun.collect._common.runs import completed, early_end, instead, shortfalls
    from perun.collect.complexity.records import Gaps

    table, gaps = CallTable(), Gaps()
    numbers: dict[FunctionAddress, int] = {}
    for process in found:
        own = [numbers.setdefault(place, len(numbers)) for place in process.places]
        number = np.array([*own, UNKNOWN], np.int64)  # the caller -1 picks the last element
        for calls in process.calls(found[0].started, corrected.of(process)):
            calls = calls.replace(function=number[calls.function], caller=number[calls.caller])
            table.add(calls, process.pid)
        gaps = gaps.plus(process.gaps)
    functions = selection.functions(list(numbers), run.cwd, ctx)
    early = early_end(sample, params.timeout)
    overhead = corrected.region({place: functions[number].name for place, number in numbers.items()})
    notes = [*selection.notes, *_notes(gaps, table.total, found, functions, early + instead(sample))]
    notes += corrected.notes(overhead)
    for note in notes:
        ctx.note(note)
    summary = _summary(gaps, table.total, found, sample.real, early, notes)
    summary["overhead"] = overhead
    collector = {"name": ComplexityCollector.name, "params": to_mapping(params)}
    applied = selection.applied
    if applied is not None:
        summary["optimization"] = {**applied.report.region(), "switched-off": []}
    profile = table.profile(functions, run, collector, summary)
    if applied is not None:
        profile["header"]["optimization"] = applied.head()
        applied.update(profile)
    return completed(profile, sample, shortfalls(sample, params.timeout, _lost(gaps)))


def _lost(gaps: Gaps) -> int:
    """The number of calls that are missing from the recording; a skipped call has an entry and an exit."""
    return gaps.lost + gaps.too_deep + (gaps.skipped + 1) // 2


def _summary(
    gaps: Gaps, total: int, found: Sequence[ProcessRecording], real: float, early: str, notes: Sequence[str]
) -> dict[str, Any]:
    return {
        "engine": "instrumentation",
        "calls": total,
        "processes": len(found),
        "duration": round(real, 6),
        "ended": f"early: {early}" if early else "normally",
        "missed-exits": gaps.missed,
        "open-calls": gaps.open,
        "lost": gaps.lost + gaps.too_deep,
        "notes": list(notes),
    }


def _notes(
    gaps: Gaps, total: int, found: Sequence[ProcessRecording], functions: Sequence[CalledFunction], early: str
) -> list[str]:
    from perun.collect._common.runs import CONFINED, stopped_because

    notes = []
    if gaps.missed:
        notes.append(
            f"{counted(gaps.missed, 'call')} ended without an exit (longjmp); in the profile they end at the "
            "next exit of a caller"
        )
    if early:
        notes.append(f"the run ended early, when {counted(gaps.open, 'call')} had not ended: it {early}")
    if gaps.lost:
        lost, reason = counted(gaps.lost, "call"), stopped_because(gaps.error)
        notes.append(
            f"the profile lacks {lost} and all later ones of their threads, because {reason}"
            if gaps.error == CONFINED
            else f"the profile lacks {lost}, because the runtime could not write its file: {reason}"
        )
    if gaps.too_deep:
        notes.append(f"the profile lacks {counted(gaps.too_deep, 'call')} that were nested too deeply")
    if gaps.skipped:
        notes.append(
            f"the profile lacks calls in signal handlers that interrupted the recording: {gaps.skipped:,} "
            "entries and exits"
        )
    if any(process.lost_functions for process in found):
        notes.append("the program has more functions than Perun can record; select some with --rules")
    if not any(function.sizes for function in functions):
        notes.append(
            "Perun found no sizes of structures and uses the number of earlier calls instead; name sizes "
            "with --size <func>=<expression>"
        )
    if total > MANY_CALLS:
        notes.append(
            f"the profile has {counted(total, 'call')}; record fewer of them with --rules or --sampling"
        )
    return notes


def _nothing_recorded(program: str, params: ComplexityParams, sample: RunSample) -> JobFailed:
    from perun.collect._common.runs import ended, instead

    message = f"{program} recorded no call of a function (it {ended(sample)}{instead(sample)})"
    if params.rules:
        return JobFailed(message, "check that the program calls a function named with --rules (-r)")
    if params.files:
        return JobFailed(
            message, "compile and link the program without -static, for the same architecture as Python"
        )
    return JobFailed(
        message,
        "let Perun compile the program: name its sources with --files, or with --build a command that "
        "compiles all of it again, e.g. --build 'make -B'",
    )


# What the runtime adds to the times of calls: it records a program of empty functions, compiled for it.

PLAIN, SIZED, LEFT_OUT = "no size", "with a size", "left out by sampling"
_FUNCTIONS: Final = {PLAIN: "calibration_stepped_0", SIZED: "calibration_emulated_0"}
_CALLS: Final = 200
"""Calls of each function in each round: the clock is coarse beside what such a call costs."""
_SECONDS: Final = 20.0
_SAMPLING: Final = 1 << 30


class OverheadCorrection:
    """Subtracts the cost of recording from the calls of all processes of a run.

    :ivar why_not: why the times are as they were recorded; empty where they are corrected.
    """

    def __init__(self, costs: Mapping[str, CallCost], selection: Selection, why_not: str = "") -> None:
        self.why_not = why_not
        self._costs = costs
        self._selection = selection
        self._processes: list[tuple[Sequence[FunctionAddress], Overhead]] = []

    def of(self, process: ProcessRecording) -> Overhead | None:
        """What is subtracted from the times of a process."""
        if self.why_not:
            return None
        own = [self._costs[self._way(place)] for place in process.places]
        # A call that sampling left out, but which has a recorded call within it, is written like others.
        overhead = Overhead([*own, *own, self._costs[LEFT_OUT]], process.speed)
        self._processes.append((process.places, overhead))
        return overhead

    def region(self, names: Mapping[FunctionAddress, str]) -> dict[str, Any]:
        """The key `overhead` of the profile, once all calls are decoded."""
        if self.why_not:
            return {"why-not": self.why_not}
        sums: dict[str, dict[str, Any]] = {}
        for places, overhead in self._processes:
            merge(sums, overhead.by_function([names[place] for place in places]))
        return region(self._costs, [self._way(place) for place in names], sums)

    @staticmethod
    def notes(found: Mapping[str, Any]) -> list[str]:
        """What the user should know of a :meth:`region`."""
        return notes(found)

    def _way(self, place: FunctionAddress) -> str:
        is_sized = place.path == self._selection.path and place.address in self._selection.sizes
        return SIZED if is_sized else PLAIN


def correction(
    library: Path, selection: Selection, environment: Callable[..., Run], ctx: CollectContext
) -> OverheadCorrection:
    """What to subtract; measured unless that was done since the machine started.

    :param environment: makes a run that records, of a run, a folder for recordings and a table.
    """
    if not INSTRUMENTED.is_file():
        return OverheadCorrection(
            {}, selection, f"{INSTRUMENTED.name} was not built when Perun was installed"
        )

    def measure(missing: Sequence[str]) -> dict[str, CallCost]:
        return _measured(environment, ctx)

    status = library.stat()
    recorder = f"complexity {status.st_size}-{status.st_mtime_ns}"
    ways = (PLAIN, SIZED, LEFT_OUT)
    try:
        costs = CalibrationCosts(ctx.cache, recorder, INSTRUMENTED).of(ways, measure)
    except (PerunError, OSError) as problem:
        return OverheadCorrection({}, selection, str(problem))
    # Without debug information of its own the program has no calls with a size.
    costs = {SIZED: costs[PLAIN], **costs} if PLAIN in costs else costs
    missing = [way for way in ways if way not in costs]
    why_not = f"calls of the program {INSTRUMENTED.name} are missing" if missing else ""
    return OverheadCorrection(costs, selection, why_not)


def _measured(environment: Callable[..., Run], ctx: CollectContext) -> dict[str, CallCost]:
    folder = ctx.scratch / "calibration"
    folder.mkdir(exist_ok=True)
    table = folder / "table"
    params = ComplexityParams(sampling=((LOOPED, _SAMPLING),))
    table.write_bytes(select(str(INSTRUMENTED), params, ctx).table)
    run = environment(Run(str(INSTRUMENTED), f"{ROUNDS} {_CALLS}", "", cwd=ctx.scratch), folder, table)
    with Execution(run, ctx.scratch, _SECONDS, output=Output.DISCARD, single_run=True) as execution:
        sample = execution.record()
    if sample.interruption is not None:
        raise sample.interruption
    recorded = processes(folder)
    if not recorded:
        return {}
    process = recorded[0]
    calls = Calls.joined(list(process.calls(process.started)))
    with Binary(INSTRUMENTED, ctx.cache) as binary:
        addresses = {function.name: function.address for function in binary.functions}
    numbers = {place.address: number for number, place in enumerate(process.places)}

    def rows(name: str) -> Calls:
        own = calls.where(calls.function == numbers.get(addresses.get(name, -1), -2))
        return own.where(np.argsort(own.start, kind="stable"))

    bare = rows(BARE)
    costs: dict[str, CallCost] = {}
    for way, name in _FUNCTIONS.items():
        own = rows(name)
        found = cost_of(
            CalibrationCalls(own.start, own.duration), CalibrationCalls(bare.start, bare.duration), _CALLS
        )
        if found is not None:
            costs[way] = found
    loop = rows(LOOP)
    if PLAIN in costs and len(loop):
        own_cost = costs[PLAIN].inside
        empty = empty_call(CalibrationCalls(bare.start, bare.duration), own_cost, _CALLS)
        each = (loop.duration - own_cost) / _CALLS - empty
        inside = float(np.median(loop.duration - loop.exclusive)) / _CALLS
        costs[LEFT_OUT] = made(inside, max(float(np.median(each)), inside), each)
    return costs
