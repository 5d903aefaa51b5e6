"""The sample collector: runs the command under the sampler, or attaches that to a process."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from perun.collect._common import runs as common
from perun.collect._common.runs import completed, early_end, new_profile, require_recorded, shortfalls
from perun.collect.sample.frames import NATIVE, NamedStacks, SampledFrame, Trace
from perun.collect.sample.records import NOTHING, SampledAmount, SampleRecording, read
from perun.collect.sample.timeline import timeline_region
from perun.core.errors import CollectorUnavailable, JobFailed
from perun.core.process import programs
from perun.core.process.command import find_executable, outcome
from perun.core.process.execution import Execution, RunSample
from perun.core.wording import counted as number_of
from perun.native.symboliser import Symboliser, find_second, find_tool
from perun.native.symbols import Debuginfod
from perun.plugin.api import CollectContext, Readiness, Run
from perun.plugin.params import param, to_mapping
from perun.profile.factory import Profile
from perun.profile.incomplete import Incomplete
from perun.profile.island import TIMELINE
from perun.profile.sampled import CPU, OTHER, SAMPLED, WAITING, WHOLE

COLLECTOR_TYPE: Final = SAMPLED
COLLECTOR_DEFAULT_UNITS: Final = {SAMPLED: "s"}
SAMPLER: Final = Path(__file__).with_name("perun_sample")
"""Made of `native/`, which the build puts beside this module."""
STACKS: Final = ("auto", "copies", "frame-pointers")
PYTHON_CHOICES: Final = ("functions", "all", "off")
COPIED: Final = 16384
"""Bytes of each copy of a stack."""
_EVENTS: Final = ("task-clock", "cycles")
_SIZE: Final = 3_500_000
"""About so many bytes of JSON for traces; :data:`_FRAME_SIZE` of a frame beside its names."""
_FRAME_SIZE: Final = 80
_SECOND: Final = 1e9
_WHAT: Final = "the sampler"
_PARANOID: Final = Path("/proc/sys/kernel/perf_event_paranoid")
_BROKEN: Final = 0.05
"""The share of stacks that do not reach the outermost function from which on the user is told."""
_WITHOUT: Final = 0.01
"""The share of samples of Python without its functions above which the user is told."""
_REFUSED: Final = {
    1: "it is not CPython",
    2: "it is not CPython 3.9 to 3.14",
    3: "it has no symbols",
    4: "the system does not allow to read its memory (kernel.yama.ptrace_scope)",
}
_SHORT: Final = 0.9
"""The share of the CPU time that samples stand for, below which the user is told."""


@dataclass(frozen=True)
class SampleParams:
    """How often what is sampled, and how callers are found."""

    frequency: int = param(
        499,
        short="-F",
        metavar="<hertz>",
        minimum=1,
        help="Samples for each second of CPU time of a thread, on the average: the time between is random.",
    )
    stacks: str = param(
        "auto",
        choices=STACKS,
        help="How callers are found: copies (of the stack, read by the tables that programs have for "
        "exceptions, and by frame pointers where these lack), frame-pointers (alone: cheaper, for programs "
        "and libraries that are all built with them), or auto: copies where this processor is supported.",
    )
    event: str = param(
        "task-clock",
        choices=_EVENTS,
        help="What sets samples off: task-clock (CPU time), or cycles of the processor, which many virtual "
        "machines do not count.",
    )
    kernel: bool = param(
        False, help="Also sample what the kernel does for the program, which the system must allow."
    )
    python: str = param(
        "functions",
        choices=PYTHON_CHOICES,
        help="What to show of Python programs: their functions, all (with the C functions of the interpreter "
        "between them), or off (these C functions alone).",
    )
    wall: bool = param(
        False,
        help="Also look about a hundred times a second at the threads that have no processor, and where they "
        "wait: real time beside CPU time.",
    )
    pid: int = param(
        0,
        metavar="<number>",
        minimum=0,
        help="Sample this process of yours, which runs already, in place of a command.",
    )
    seconds: float = param(
        10.0, long="--for", metavar="<seconds>", minimum=0.01, help="With --pid: how long."
    )
    ignore_failure: bool = common.ignore_failure()
    timeout: float = common.timeout(kept=True)


class SampleCollector:
    """Samples where the threads of a command and of all that it starts spend their CPU time.

    The command is neither changed nor held up, and an ordinary user may do it. What is in the profile are
    shares with the uncertainty of samples, not counts.
    """

    name: ClassVar[str] = "sample"
    help: ClassVar[str] = (
        "Samples the CPU time of each function of a program, of any language, at little cost."
    )
    Params: ClassVar[type] = SampleParams

    def subject(self, params: SampleParams) -> str:
        """The name of the process that is attached to; empty where a command is run."""
        if not params.pid:
            return ""
        try:
            return Path(f"/proc/{params.pid}/comm").read_text("utf-8", "replace").strip()
        except OSError:
            return f"process {params.pid}"

    def readiness(self, environ: Mapping[str, str]) -> Iterator[Readiness]:
        """Whether the sampler was built, and whether the system lets it sample."""
        built = common.readiness(SAMPLER, _WHAT)
        yield built if built.missing else Readiness("", *refusal())
        if not find_tool(environ):
            yield Readiness(
                "lines and inlined functions",
                "neither addr2line nor llvm-symbolizer is installed",
                "install one with: apt-get install binutils",
            )

    def collect(self, run: Run, params: SampleParams, ctx: CollectContext) -> Profile:
        """Run the command once and sample it, or sample the process.

        :raises CollectorUnavailable: where the sampler was not built, or the system does not let it sample.
        :raises JobFailed: where the command cannot be started, or fails (unless that is to be ignored), or
            nothing was sampled.
        :raises Interrupted: where the user ends the run; with what was sampled until then.
        """
        common.require(SAMPLER, _WHAT)
        why, hint = refusal(params)
        if why:
            raise CollectorUnavailable(why, hint)
        file = ctx.scratch / "samples"
        file.unlink(missing_ok=True)
        argv = [] if params.pid else run.command().argv
        if argv:
            find_executable(argv[0], run.cwd, run.environ)
        ctx.report(f"sampling {run}", 0, 0)
        with Execution(
            run, ctx.scratch, params.timeout, engine=[*words_of(params, file), *argv], single_run=True
        ) as one:
            sample = one.record()
            errors = one.last_errors()
        recording = _recording(file, sample, errors)
        if not params.pid and recording.ended:
            sample = sample._replace(status=recording.status)
            require_recorded(run, sample, errors, ignore_failure=params.ignore_failure)
        ctx.report("naming functions", 0, 0)
        symboliser = Symboliser(
            find_tool(run.environ), ctx.cache / "symbols" if ctx.cache else None, find_second(run.environ)
        )
        debuginfod = Debuginfod(run.environ, ctx.cache / "debuginfod" if ctx.cache else None)
        named = NamedStacks(recording, run.cwd, symboliser, debuginfod, fold=params.python != "all")
        sums = Sums(recording, named, kernel=params.kernel)
        early = early_end(sample, params.timeout)
        notes = (
            [f"the run ended early: it {early}; the profile holds what was sampled until then"]
            if early
            else []
        )
        if sample.status and not early:
            notes.append(f"the command {str(run)!r} {outcome(sample.status)}")
        notes += [*notes_of(recording, sums, named, kernel=params.kernel), *debuginfod.notes]
        for note in notes:
            ctx.note(note)
        program = os.path.basename(argv[0]) if argv else run.cmd
        profile = new_profile(run, COLLECTOR_TYPE, COLLECTOR_DEFAULT_UNITS, self.name, to_mapping(params))
        profile["collector_info"]["sampling"] = _facts(recording, sums, notes)
        profile[TIMELINE] = timeline_region(recording, named, sums.scale)
        profile.update_resources(resources(sums, program), columns=("samples",))
        return completed(profile, sample, [*shortfalls(sample, params.timeout), *_lacks(recording)])


def words_of(params: SampleParams, file: Path) -> list[str]:
    """The words that start the sampler, before those of the command."""
    copies = params.stacks == "copies" or (params.stacks == "auto" and os.uname().machine == "x86_64")
    numbers = [params.frequency, COPIED if copies else 0, params.event, int(params.kernel)]
    looks = [params.pid, params.seconds, int(params.wall), int(params.python != "off")]
    return [str(SAMPLER), str(file), *map(str, [*numbers, *looks])]


def refusal(params: SampleParams | None = None) -> tuple[str, str]:
    """Why the system does not let the sampler sample, and what to do about it; empty texts where it does."""
    words = [str(SAMPLER)] if params is None else [str(SAMPLER), params.event, str(int(params.kernel))]
    try:
        code = programs.run(words).code
    except OSError as problem:
        return f"the sampler {SAMPLER} does not start: {problem.strerror}", ""
    if not code:
        return "", ""
    if code == errno.ENOSYS:
        return (
            "the kernel, or the container, has no perf_event_open",
            "allow that system call in the container",
        )
    if code in (errno.EACCES, errno.EPERM):
        level = _PARANOID.read_text("ascii").strip() if _PARANOID.is_file() else "unknown"
        least = 1 if params is not None and params.kernel else 2
        if level.lstrip("-").isdecimal() and int(level) <= least:
            return (
                "the container does not allow perf_event_open",
                "start it with a seccomp profile that allows perf_event_open, or with --cap-add PERFMON",
            )
        return (
            f"kernel.perf_event_paranoid is {level}: an ordinary user may not sample programs"
            + " and the kernel" * (least == 1),
            f"allow it: sysctl kernel.perf_event_paranoid={least}",
        )
    if code in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        event = params.event if params is not None else _EVENTS[0]
        return f"this machine does not count {event}", "sample by --event task-clock"
    return f"perf_event_open: {os.strerror(code)}", ""


def _recording(file: Path, sample: RunSample, errors: list[str]) -> SampleRecording:
    """What was recorded.

    :raises JobFailed: where that is nothing, but by an interruption, which goes on then.
    """
    if not file.is_file():
        if sample.interruption is not None:
            raise sample.interruption
        why = next((line for line in errors if line.startswith("perun_sample: ")), outcome(sample.status))
        raise JobFailed(f"nothing was sampled: {why.removeprefix('perun_sample: ')}")
    found = read(file)
    if not found.samples and sample.interruption is not None:
        raise sample.interruption
    return found


class Sums:
    """The samples by named call stack and by function.

    :ivar traces: of each thread's name and trace. :ivar inclusive: of each function with all that it called,
        once for each sample, however often it is in the stack.
    :ivar waits: the same as traces of threads that had no processor, in real time.
    :ivar whole: how many samples have whole stacks. :ivar broken: where the others end.
    :ivar weighed: the nanoseconds that the samples alone stand for; :ivar scale: what is used for each.
    """

    def __init__(self, recording: SampleRecording, named: NamedStacks, *, kernel: bool = False) -> None:
        self.weighed = sum(amount.nanoseconds for amount in recording.amounts.values())
        self.traces: dict[tuple[str, Trace], SampledAmount] = {}
        self.waits: dict[tuple[str, Trace], SampledAmount] = {}
        self.inclusive: dict[tuple[str, str], SampledAmount] = {}
        self.total = NOTHING
        self.whole = 0
        self.broken: Counter[str] = Counter()
        # What samples stand for is known better from all that was used: as shares of that they are true.
        self.scale = (cpu_of(recording, kernel=kernel) or self.weighed) / max(self.weighed, 1)
        for (stack, thread), sampled in recording.amounts.items():
            trace, is_whole = named.trace(stack)
            amount = sampled._replace(nanoseconds=sampled.nanoseconds * self.scale)
            self.total += amount
            self.whole += amount.samples * is_whole
            if not is_whole:
                self.broken[trace[-1].source or trace[-1].function] += amount.samples
            key = thread, trace
            self.traces[key] = self.traces.get(key, NOTHING) + amount
            for function in {(frame.source, frame.function) for frame in trace}:
                self.inclusive[function] = self.inclusive.get(function, NOTHING) + amount
        for (stack, thread), waited in recording.waits.items():
            key = thread, named.trace(stack)[0]
            self.waits[key] = self.waits.get(key, NOTHING) + waited


def cpu_of(recording: SampleRecording, *, kernel: bool) -> float:
    """The nanoseconds of CPU time that were to be sampled: without those in the kernel, unless that was, too.

    0 where they are not known, as the sampler was killed.
    """
    used = recording.user + recording.system
    return recording.cpu * (recording.user / used if used and not kernel else 1.0)


def resources(sums: Sums, program: str) -> Iterator[dict[str, Any]]:
    """The resources of a profile: of each call stack what its innermost function used itself, of each
    function what it used with all that it called, and the whole.

    :param program: its name, which the whole goes by.
    """
    yield _resource({"source": program, SAMPLED: WHOLE}, CPU, sums.total)
    for subtype, traces in ((CPU, sums.traces), (WAITING, sums.waits)):
        for (thread, trace), amount in _fitting(traces):
            uid = {key: value for key, value in _record(trace[0]).items() if key in ("source", "function")}
            frames = [_record(frame) for frame in trace]
            yield {**_resource(uid, subtype, amount), "thread": thread, "trace": frames}
    for (source, function), amount in sorted(
        sums.inclusive.items(), key=lambda one: (-one[1].nanoseconds, one[0])
    ):
        place = {"source": source} if source else {}
        yield _resource({**place, "function": function, SAMPLED: "inclusive"}, CPU, amount)


def _resource(uid: dict[str, str], subtype: str, amount: SampledAmount) -> dict[str, Any]:
    seconds = round(amount.nanoseconds / _SECOND, 6)
    return {"type": SAMPLED, "subtype": subtype, "uid": uid, "amount": seconds, "samples": amount.samples}


def _record(frame: SampledFrame) -> dict[str, Any]:
    found: dict[str, Any] = {"source": frame.source} if frame.source else {}
    found["function"] = frame.function
    if frame.line:
        found["line"] = frame.line
    if frame.kind != NATIVE:
        found["kind"] = frame.kind
    return found


def _fitting(
    traces: Mapping[tuple[str, Trace], SampledAmount],
) -> Iterator[tuple[tuple[str, Trace], SampledAmount]]:
    """The stacks, the largest first; where there is no more room, those of a function and line are one."""
    room = _SIZE
    cut: dict[tuple[str, Trace], SampledAmount] = {}
    for key, amount in sorted(traces.items(), key=lambda one: (-one[1].nanoseconds, one[0])):
        thread, trace = key
        room -= sum(_FRAME_SIZE + len(frame.function) + len(frame.source) for frame in trace)
        if room > 0:
            yield key, amount
        else:
            shown = thread, (trace[0], SampledFrame(NATIVE, OTHER.name))
            cut[shown] = cut.get(shown, NOTHING) + amount
    yield from cut.items()


def _facts(recording: SampleRecording, sums: Sums, notes: list[str]) -> dict[str, Any]:
    """What is known of the recording as a whole: seconds, samples, and the share of whole stacks."""
    seconds = {
        "duration": (recording.end or recording.start) - recording.start,
        "cpu": recording.cpu,
        "user": recording.user,
        "system": recording.system,
        "own-cpu": recording.own_cpu,
    }
    return {
        "samples": sums.total.samples,
        "lost": recording.lost + recording.unwritten,
        "whole-stacks": round(sums.whole / sums.total.samples, 4) if sums.total.samples else 1.0,
        "stacks": "copies" if recording.stack_bytes else "frame-pointers",
        "period": round(recording.period / _SECOND, 9),
        **{name: round(value / _SECOND, 6) for name, value in seconds.items()},
        "python-samples": recording.python,
        "python-changed": recording.changed,
        "python-late": recording.late,
        "python-bare": recording.bare,
        "processes": len(recording.processes),
        "notes": notes,
    }


def notes_of(recording: SampleRecording, sums: Sums, named: NamedStacks, *, kernel: bool) -> Iterator[str]:
    """What the user should know of the samples."""
    samples = sums.total.samples
    if not samples and recording.waits:
        return
    if not samples:
        used = recording.cpu / _SECOND
        yield (
            f"no sample was taken: the command used {used:.3f} s of CPU time, and no "
            "thread enough for one; let it run longer, or sample more often with --frequency"
        )
        return
    if recording.lost:
        lost = number_of(recording.lost, "sample")
        yield f"{lost} of {samples + recording.lost} lost: the sampler had no processor"
    if recording.error:
        why = os.strerror(recording.error)
        yield f"the recording ended early: {why}; {recording.unwritten} samples are missing"
    if (broken := samples - sums.whole) > _BROKEN * samples:
        where = ", ".join(name for name, _ in sums.broken.most_common(3))
        yield (
            f"{broken / samples:.0%} of the call stacks do not reach the outermost function; they end in "
            f"{where}: build it with -fno-omit-frame-pointer or -fasynchronous-unwind-tables"
        )
    told, used = sums.weighed / _SECOND, cpu_of(recording, kernel=kernel) / _SECOND
    system = 0 if kernel else recording.system / _SECOND
    if told < _SHORT * used:
        yield (
            f"the samples stand for {told:.2f} of {used:.2f} s of CPU time: what threads "
            "use before their first sample is not seen; sample more often with --frequency"
        )
    if system > _SHORT * told / 4:
        yield f"{system:.2f} s in the kernel were not sampled; --kernel does"
    unread = recording.changed + recording.late
    of_python = unread + recording.python
    if unread > _WITHOUT * of_python:
        yield (
            f"{unread} of {of_python} samples have no functions of Python: in {recording.changed} these "
            f"changed before they were read, {recording.late} could not be read in time; besides, threads "
            f"ran none of Python in {number_of(recording.bare, 'sample')}"
        )
    for path, reason in recording.refused.items():
        yield f"the functions of {os.path.basename(path)} are not told: {_REFUSED.get(reason, 'unknown')}"
    if named.replaced:
        names = ", ".join(sorted(named.replaced))
        yield f"functions of files that were replaced while they ran have no names: {names}"


def _lacks(recording: SampleRecording) -> Iterator[Incomplete]:
    if recording.unwritten or not recording.ended:
        why = os.strerror(recording.error) if recording.error else "the sampler was killed"
        yield Incomplete(f"the recording ended early: {why}")
