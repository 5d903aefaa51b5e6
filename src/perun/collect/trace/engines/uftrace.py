"""The engine `uftrace`, which patches functions of the running program; it needs no root and no rebuild."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import ClassVar, Final, NamedTuple

import numpy as np

from perun.collect._calls.events import UNKNOWN, CallEvents, Calls, Nesting
from perun.collect._calls.sizes import Size
from perun.collect.trace.engines import EngineContext, TraceRecording, nothing_recorded
from perun.collect.trace.engines.calibration import (
    ProbeMode,
    RecordingPiece,
    TimeCorrection,
    boundaries,
    correction,
    pieces,
    sizes_from_sums,
)
from perun.collect.trace.engines.uftrace_safety import (
    KEPT,
    NO_DEBUG_INFORMATION,
    unsafe_functions,
    unwinds,
    used_by,
)
from perun.collect.trace.plan import Probe, TracePlan
from perun.core.errors import CollectorUnavailable
from perun.core.process.command import failed
from perun.core.process.ending import descendants, fields_of
from perun.core.wording import counted, listed
from perun.native.columns import Ints
from perun.native.elf import read_elf
from perun.profile.incomplete import Incomplete

# What uftrace wrote: the sessions of processes, and the records of threads as events.

_ENTRY, _EXIT, _LOST = 0, 1, 2
"""Types of the records of uftrace that count here: the lowest two bits of the second word."""


DEEPEST: Final = 1023
"""The greatest depth of a call that uftrace records; it is in bits 6 to 15 of the second word."""


class ProgramSession(NamedTuple):
    """The program that a process runs from a time on.

    :param start: nanoseconds. :param bases: of each traced file, what its addresses are moved by.
    """

    start: int
    bases: dict[str, int]


class UftraceDecoder:
    """Decodes the records of one thread to events.

    :ivar lost: number of records that uftrace reports as lost.
    :ivar deepest: the functions with calls at the greatest depth that uftrace records.
    """

    def __init__(self, probes: Sequence[Probe], sessions: Sequence[ProgramSession], epoch: int) -> None:
        self.lost = 0
        self.deepest: set[int] = set()
        self._epoch = epoch
        self._probes = probes
        self._tables = [_table(probes, session) for session in sessions]
        self._starts = np.array([session.start for session in sessions], np.int64)
        self._direct = np.array(
            [probe.size is not None and not follows_pointers(probe.size) for probe in probes], np.bool_
        )

    def events(self, words: RecordingPiece) -> tuple[CallEvents, int]:
        """The events of a piece, and the number of words of its complete records."""
        values = words.values
        at, used = boundaries(values, 2)
        head = values[at + 1]
        kind = (head & np.uint64(3)).astype(np.int64)
        lost = kind == _LOST
        if lost.any():
            self.lost += int((head[lost] >> np.uint64(16)).sum())
        chosen = (kind == _ENTRY) | (kind == _EXIT)
        at, head, kind = at[chosen], head[chosen], kind[chosen]
        time = values[at].astype(np.int64)
        function = self._functions(time, (head >> np.uint64(16)).astype(np.int64))
        known = function >= 0
        at, head, kind, time, function = at[known], head[known], kind[known], time[known], function[known]
        size = np.full(len(at), UNKNOWN, np.int64)
        entry = kind == _ENTRY
        if self._direct.any():
            has = entry & ((head & np.uint64(4)) != 0) & self._direct[function]
            size[has] = self._direct_sizes(function[has], values[at[has] + 2].view(np.int64))
        deep = ((head >> np.uint64(6)) & np.uint64(DEEPEST)) == np.uint64(DEEPEST)
        if deep.any():
            self.deepest.update(np.unique(function[deep]).tolist())
        return CallEvents(time - self._epoch, function, entry, size), used

    def _functions(self, time: Ints, address: Ints) -> Ints:
        """The numbers of the functions at addresses, -1 for functions that are not traced."""
        session = np.maximum(np.searchsorted(self._starts, time, "right") - 1, 0)
        function = np.full(len(address), -1, np.int64)
        for number, (starts, ends, numbers) in enumerate(self._tables):
            if not len(starts):
                continue
            mine = session == number
            place = np.searchsorted(starts, address[mine], "right") - 1
            inside = (place >= 0) & (address[mine] <= ends[place])
            function[mine] = np.where(inside, numbers[place], -1)
        return function

    def _direct_sizes(self, function: Ints, value: Ints) -> Ints:
        size = np.full(len(value), UNKNOWN, np.int64)
        for number in np.unique(function).tolist():
            spec = self._probes[number].size
            assert spec is not None
            mine = function == number
            size[mine] = sizes_from_sums(spec, _narrowed(value[mine], spec))
        return size


def _table(probes: Sequence[Probe], session: ProgramSession) -> tuple[Ints, Ints, Ints]:
    """The address ranges of the probed functions and their numbers, in the order of the addresses."""
    rows = sorted(
        (session.bases[probe.path] + probe.function.address, probe.function.size, number)
        for number, probe in enumerate(probes)
        if probe.path in session.bases
    )
    starts, sizes, numbers = np.array(rows, np.int64).reshape(len(rows), 3).T
    return starts, starts + sizes, numbers


def follows_pointers(size: Size) -> bool:
    """Whether the size lies behind a pointer, which uftrace does not follow."""
    return any(term.offsets for term in size.terms)


def argument_of(size: Size) -> str:
    """The parameter with which a size begins, as uftrace specifies it (`--argument`)."""
    if size.register >= 0:
        return f"arg{size.register + 1}/x64"
    return f"arg1/x64%stack+{size.stack // 8}"


def read_tasks(data: Path, paths: set[str]) -> tuple[dict[int, list[ProgramSession]], dict[int, int]]:
    """The sessions of each process in the order of time, and the process of each thread.

    :param data: the folder that uftrace wrote. :param paths: the files that are traced.
    """
    sessions: dict[int, list[ProgramSession]] = {}
    tasks: dict[int, int] = {}
    for line in (data / "task.txt").read_text("utf-8", "replace").splitlines():
        kind, _, rest = line.partition(" ")
        fields = dict(field.partition("=")[::2] for field in shlex.split(rest))
        if kind == "SESS":
            pid = int(fields["pid"])
            bases = _bases(data / f"sid-{fields['sid']}.map", paths)
            sessions.setdefault(pid, []).append(ProgramSession(_nanoseconds(fields["timestamp"]), bases))
        elif kind == "TASK":
            tasks[int(fields["tid"])] = int(fields["pid"])
        elif kind == "FORK":
            child, parent = int(fields["pid"]), int(fields["ppid"])
            tasks[child] = child
            sessions.setdefault(child, list(sessions.get(parent, [])))
    return sessions, tasks


def _bases(file: Path, paths: set[str]) -> dict[str, int]:
    """Of each traced file that the process has mapped, what its addresses are moved by."""
    bases: dict[str, int] = {}
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return bases
    for line in lines:
        fields = line.split(None, 5)
        path = re.sub(r" build-id:[0-9a-f]*$", "", fields[5]) if len(fields) == 6 else ""
        path = os.path.realpath(path) if path.startswith("/") else path
        if path in paths and path not in bases:
            bases[path] = int(fields[0].partition("-")[0], 16) - _first_address(path)
    return bases


def _first_address(path: str) -> int:
    elf = read_elf(path)
    return min((segment.address for segment in elf.segments), default=0) & ~0xFFF if elf else 0


def _nanoseconds(text: str) -> int:
    seconds, _, rest = text.partition(".")
    return int(seconds) * 1_000_000_000 + int(rest.ljust(9, "0")[:9])


def _narrowed(value: Ints, size: Size) -> Ints:
    """The values of a parameter, of which only the lowest bytes of the register are defined."""
    term = size.terms[0]
    kind = np.dtype(f"{'i' if term.signed else 'u'}{term.width}")
    return value.astype(kind).astype(np.int64) * term.factor


MIN_SIZE: Final = 5
"""Bytes of a jump: shorter functions cannot be patched."""
_MAX_OPTIONS: Final = 120_000
"""Characters of options of one kind, which uftrace passes on as one; the kernel allows it 131,072."""
_NAMED: Final = 5
"""How many functions a note names."""
_LOOKS: Final = 13
"""Looks at uftrace, 0.1 s apart, after which it is taken to wait for ever: it sleeps for 1 s at most."""
_START: Final = 19
"""The place of the time of the start in what the kernel tells of a process, from its state on."""

_INSTRUMENTED: Final = "__cyg_profile_func_enter"
_COUNTING: Final = frozenset({"mcount", "_mcount", "__fentry__"})


class UftraceEngine:
    """Wraps `uftrace record -P`.

    :param careful: whether :meth:`unavailable` refuses a plan that uftrace can record only in part.
    """

    name: ClassVar[str] = "uftrace"
    switches: ClassVar[Mapping[str, str]] = {
        "dynamic-probing": "uftrace cannot take its patches out of a running program; use --engine ebpf",
    }

    def __init__(self, environ: Mapping[str, str], cache: Path | None = None, careful: bool = False) -> None:
        path = environ.get("PATH", os.defpath)
        self.notes: list[str] = []
        self.missed = self.lost = 0
        self.method = ""
        self._tool = which("uftrace", path=path) or ""
        self._disassembler = which("objdump", path=path) or ""
        self.correction: TimeCorrection | None = None
        self._cache = cache
        self._careful = careful
        self._deepest: set[int] = set()
        self._unsafe: dict[int, str] | None = None

    def unavailable(self, plan: TracePlan | None = None) -> tuple[str, str]:
        """Whether uftrace is missing, or would change what the program does."""
        if not self._tool:
            return "uftrace is not installed", "install it with: apt-get install uftrace"
        if os.uname().machine != "x86_64":
            return f"it needs x86-64, but this machine is {os.uname().machine}", ""
        return self._refusal(plan) if plan else ("", "")

    def _refusal(self, plan: TracePlan) -> tuple[str, str]:
        if plan.throws:
            return (
                "it crashes programs that throw exceptions",
                "trace it as root with --engine ebpf, or build and record it with perun collect complexity",
            )
        for path in {plan.program, *(probe.path for probe in plan.probes)}:
            if _INSTRUMENTED in used_by(path):
                return (
                    f"{os.path.basename(path)} is built with -finstrument-functions, the calls of which it "
                    "counts beside its own, so that it has each twice",
                    "build it without that, or trace it as root with --engine ebpf",
                )
            if unwinding := unwinds(path):
                return (
                    f"{os.path.basename(path)} uses {unwinding}, which does not find the way back through it",
                    "trace it as root with --engine ebpf",
                )
        unsafe = self._left_out(plan)
        reasons = "; ".join(_by_reason(plan.probes, unsafe))
        if len(unsafe) == len(plan.probes) and plan.probes:
            return f"it can record none of the functions safely: {reasons}", _remedy(unsafe)
        if self._careful and unsafe:
            return f"it cannot record all functions safely: {reasons}", _remedy(unsafe)
        behind = [probe.function.name for probe in plan.probes if probe.size and follows_pointers(probe.size)]
        if self._careful and behind:
            return (
                f"it cannot read sizes behind pointers, as those of {listed(behind, _NAMED)}",
                "run Perun as root; or use --engine uftrace, which records these calls without sizes",
            )
        return "", ""

    def _left_out(self, plan: TracePlan) -> dict[int, str]:
        """The positions of the probes that cannot be recorded safely or at all, with the reasons."""
        if self._unsafe is None:
            self._unsafe = unsafe_functions(plan.probes, self._disassembler, self._cache)
            for number, probe in enumerate(plan.probes):
                if probe.function.size < MIN_SIZE:
                    self._unsafe[number] = f"they are shorter than the {MIN_SIZE} bytes that it replaces"
        return self._unsafe

    def record(self, plan: TracePlan, context: EngineContext) -> TraceRecording:
        """Run the command under uftrace."""
        why, hint = self._refusal(plan)
        if why:
            raise CollectorUnavailable(f"uftrace cannot trace this program: {why}", hint)
        ways = [ProbeMode.of(probe, is_emulated=True) for probe in plan.probes]
        self.correction = self.correction or correction(self, plan, context, ways, self._cache)
        data, log = context.folder / "uftrace", context.folder / "uftrace.log"
        if plan.pairs:
            self.notes.append(
                "uftrace recorded no USDT probes and source lines, because it does not support them; "
                "use --engine ebpf"
            )
        self._note_what_is_missing(plan)
        command = context.run.command()
        argv = [
            self._tool,
            "record",
            *("--no-event", "--no-libcall", "--force", "--color=no", "--demangle=no", "--match=regex"),
            *("--max-stack=65535", f"--logfile={log}", "--debug-domain=dynamic:2", "-d", str(data)),
            *self._options(plan),
            *command.argv,
        ]
        before = _shared_memory()
        try:
            ended = context.execute(argv, context.run.environ, _Waiting(data))
        finally:
            _remove_shared_memory(data, before)
        if not (data / "task.txt").is_file() and ended.sample.interruption is not None:
            raise ended.sample.interruption  # before anything was recorded
        sample = ended.sample._replace(status=_status(data, ended.sample.status))
        if not (data / "task.txt").is_file() and sample.status and (data / "info").is_file():
            raise failed(
                context.run,
                sample.status,
                ended.errors,
                "uftrace recorded nothing of it; if it does not fail without Perun, the engine is the "
                "reason: choose another one (--engine)",
            )
        self._note_what_is_not_patched(plan, log)
        if not (data / "task.txt").is_file() and _was_loaded(log):
            raise CollectorUnavailable("; ".join(self.notes), "use --engine ebpf")
        if not (data / "task.txt").is_file():
            raise nothing_recorded(
                self.name,
                ended.sample,
                _last_line(log),
                "check that the program is linked dynamically and built for this machine; or use --engine "
                "ebpf",
            )
        processes: dict[int, int] = {}
        lacks: list[Incomplete] = []
        calls = self._calls(plan, data, processes, lacks)
        off: frozenset[int] = frozenset()
        if plan.switching.period:
            off = frozenset(range(len(plan.probes))) - {plan.entry}
            calls = _timed(calls, plan)
            self.notes.append(
                "uftrace recorded all the time, and the profile has the calls that began while "
                "timed-sampling was on: the profile is smaller, but the run is no faster; use --engine ebpf"
            )
        return TraceRecording(calls, sample, ended.errors, processes, lacks=lacks, switched_off=off)

    def _note_what_is_missing(self, plan: TracePlan) -> None:
        """Note the functions that are left out, and those whose sizes are."""
        for text in _by_reason(plan.probes, self._left_out(plan)):
            self.notes.append(f"uftrace did not trace {text}")
        behind = [
            probe.function.name
            for number, probe in enumerate(plan.probes)
            if number not in self._left_out(plan) and probe.size and follows_pointers(probe.size)
        ]
        if behind:
            self.notes.append(
                f"uftrace recorded no sizes of {listed(behind, _NAMED)}, which lie behind pointers; the "
                "order of the calls stands for them; --engine ebpf records them"
            )

    def _note_what_is_not_patched(self, plan: TracePlan, log: Path) -> None:
        """Note the functions that uftrace could not patch, which its log tells."""
        patched = _patched(log)
        if not _COUNTING.isdisjoint(used_by(plan.program)):
            return  # built with -pg: its functions tell uftrace themselves
        missing = [
            probe.function.name
            for number, probe in enumerate(plan.probes)
            if number not in self._left_out(plan) and probe.function.symbol not in patched
        ]
        if missing:
            self.notes.append(
                f"uftrace did not trace {listed(missing, _NAMED)}: it could not patch their first "
                "instructions; use --engine ebpf"
            )

    def _options(self, plan: TracePlan) -> list[str]:
        """The options that name the functions to patch and the parameters to record.

        :raises CollectorUnavailable: where they are longer than a command line may be.
        """
        patched, arguments = [], []
        for number, probe in enumerate(plan.probes):
            if number in self._left_out(plan):
                continue
            pattern = f"^{re.escape(probe.function.symbol)}$"
            library = f"@{os.path.basename(probe.path)}" if probe.path != plan.program else ""
            patched += ["-P", pattern + library]
            if probe.size is not None and not follows_pointers(probe.size):
                arguments += ["-A", f"{pattern}@{argument_of(probe.size)}"]
        if sum(map(len, patched)) > _MAX_OPTIONS:
            raise CollectorUnavailable(
                f"uftrace cannot trace as many as {counted(len(plan.probes), 'function')} at once",
                "select some with --strategy custom --func, or use --engine ebpf",
            )
        if sum(map(len, arguments)) > _MAX_OPTIONS:
            self.notes.append(
                f"uftrace recorded no sizes of structures: {counted(len(plan.probes), 'function')} are too "
                "many for it; select some with --strategy custom --func"
            )
            arguments = []
        return patched + arguments

    def _calls(
        self, plan: TracePlan, data: Path, processes: dict[int, int], lacks: list[Incomplete]
    ) -> Iterator[Calls]:
        sessions, tasks = read_tasks(data, {probe.path for probe in plan.probes})
        processes.update(tasks)
        threads = sorted(int(path.stem) for path in data.glob("[0-9]*.dat"))
        epoch = min((one.start for some in sessions.values() for one in some), default=0)
        for thread in threads:
            known = sessions.get(tasks.get(thread, thread), [])
            if known:
                decoder = UftraceDecoder(plan.probes, known, epoch)
                yield from self._thread(thread, data / f"{thread}.dat", decoder)
        if self._deepest:
            names = listed([plan.probes[number].function.name for number in sorted(self._deepest)], _NAMED)
            self.notes.append(
                f"uftrace records at most {DEEPEST + 1:,} calls within each other, which {names} reached; "
                "deeper calls are missing; --engine ebpf records them"
            )
            lacks.append(Incomplete(f"calls deeper than {DEEPEST + 1:,} within each other are missing"))

    def _thread(self, thread: int, file: Path, decoder: UftraceDecoder) -> Iterator[Calls]:
        nesting = Nesting(thread, self.correction.overhead if self.correction else None)
        last = 0
        for words in pieces(file):
            events, used = decoder.events(words)
            words.consumed = used
            if len(events.time):
                last = int(events.time[-1])
                yield nesting.add(events)
        yield nesting.finish(last)
        self.missed += nesting.missed
        self.lost += decoder.lost
        self._deepest |= decoder.deepest


class _Waiting:
    """Whether uftrace 0.13 waits for ever for a program that has ended.

    It does where it has not heard of the begin or the end of one of its processes: the program could not be
    loaded or ended before it could tell (AddressSanitizer), a child has changed its root and cannot tell, or
    has another number in its own namespace. Asked to end, it writes down what it has, and the status.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._looks = self._written = self._slept = 0

    def __call__(self, engine: int) -> bool:
        """Whether the process of uftrace does so; to be asked every
        :data:`~perun.core.process.ending.LOOK`."""
        with contextlib.suppress(OSError):
            if set(descendants(engine).values()) == {"Z"} and not self._is_one_left(engine):
                written = sum(file.stat().st_size for file in self._data.iterdir())
                if not self._looks or written != self._written or fields_of(engine)[0] == "D":
                    self._looks, self._written, self._slept = 0, written, _sleeps(engine)
                self._looks += 1
                # On a busy machine it may just have had no core to go on.
                return self._looks > _LOOKS and _sleeps(engine) > self._slept
        self._looks = 0
        return False

    def _is_one_left(self, engine: int) -> bool:
        """Whether a process that uftrace knows runs, which its parent has left behind."""
        try:
            tasks = set(re.findall(rb"[pt]id=(\d+)", (self._data / "task.txt").read_bytes()))
        except OSError:
            return False
        start = int(fields_of(engine)[_START])
        known = (fields_of(int(task)) for task in tasks)
        # Older ones have the number by chance, which is that in a namespace of the program.
        return any(fields and fields[0] != "Z" and int(fields[_START]) >= start for fields in known)


def _sleeps(pid: int) -> int:
    """How often a process has gone to sleep."""
    status = Path(f"/proc/{pid}/status").read_bytes()
    found = re.search(rb"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)
    return int(found[1]) if found else 0


def _timed(pieces: Iterator[Calls], plan: TracePlan) -> Iterator[Calls]:
    """The calls that began while the timer had recording on, and all of the entry."""
    period = max(round(plan.switching.period * 1e9), 1)
    for calls in pieces:
        yield calls.where((calls.start // period % 2 == 0) | (calls.function == plan.entry))


def _by_reason(probes: Sequence[Probe], unsafe: Mapping[int, str]) -> list[str]:
    """A text for each reason, with the names of its functions."""
    names: dict[str, list[str]] = {}
    for number in sorted(unsafe):
        names.setdefault(unsafe[number], []).append(probes[number].function.name)
    return [f"{listed(some, _NAMED)}: {reason}" for reason, some in names.items()]


def _remedy(unsafe: Mapping[int, str]) -> str:
    """What the user can do, where functions are unsafe for these reasons."""
    reasons = set(unsafe.values())
    if reasons == {NO_DEBUG_INFORMATION}:
        return "compile with -g; or run Perun as root with --engine ebpf"
    if reasons == {KEPT}:
        return "compile with -fno-ipa-ra; or run Perun as root with --engine ebpf"
    return "run Perun as root with --engine ebpf, or record the program with perun collect complexity"


def _patched(log: Path) -> set[str]:
    """The symbols of the functions that uftrace has patched."""
    try:
        text = log.read_text("utf-8", "replace")
    except OSError:
        return set()
    return set(re.findall(r"patch \w+ func: (.*) \(patch size: \d+\)$", text, re.MULTILINE))


def _was_loaded(log: Path) -> bool:
    """Whether uftrace was in the program, and tried to patch functions."""
    try:
        return "dynamic patch" in log.read_text("utf-8", "replace")
    except OSError:
        return False


def _status(data: Path, status: int) -> int:
    """The wait status of the command, which uftrace writes down; `status` is that of uftrace itself."""
    found = None
    with contextlib.suppress(OSError):
        found = re.search(rb"^exit_status:(\d+)$", (data / "info").read_bytes(), re.MULTILINE)
    return int(found[1]) if found else status


def _last_line(log: Path) -> str:
    try:
        lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return f": {lines[-1][:300]}" if lines else ""


def _shared_memory() -> set[str]:
    return set(glob.glob("/dev/shm/uftrace-*"))


def _remove_shared_memory(data: Path, before: set[str]) -> None:
    """Remove the buffers in shared memory that uftrace leaves when it is killed, of its own sessions only."""
    left = _shared_memory() - before
    if not left:
        return
    try:
        sessions = re.findall(r"sid=([0-9a-f]+)", (data / "task.txt").read_text("utf-8", "replace"))
    except OSError:
        return
    for path in left:
        if any(f"uftrace-{session}-" in path for session in sessions):
            os.unlink(path)
