"""The engine `ebpf`: probes of the kernel at the entry and the exit of functions. It needs root.

A loader, which is built together with Perun, attaches the probes and writes their records to a file; see
`native/`. It attaches them by the best of three methods that the kernel supports. The cost of a probe
depends on its instruction: :mod:`perun.collect.trace.engines.following` finds the best one.

The kernel catches returns by changing the return address on the stack, which C++ exceptions do not survive.
In a program that throws, the probes are at the return instructions instead, and the stack pointer at the
next entry shows which calls an exception has ended. The kernel catches the returns of 64 nested calls at
most, so that functions that are called more deeply get probes at their return instructions as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import ClassVar, Final

import numpy as np

from perun.collect._calls.events import UNKNOWN, CallEvents, Calls, Nesting
from perun.collect._calls.sizes import Size
from perun.collect.trace.engines import EngineContext, TraceRecording, nothing_recorded
from perun.collect.trace.engines.calibration import (
    ProbeMode,
    TimeCorrection,
    boundaries,
    correction,
    pieces,
    sizes_from_sums,
)
from perun.collect.trace.engines.following import LoaderFollower, ProbeAddresses, read_code
from perun.collect.trace.plan import Probe, TracePlan
from perun.core.errors import CollectorUnavailable
from perun.core.extras import reinstall_command
from perun.core.process import programs
from perun.core.process.command import outcome
from perun.core.wording import counted, listed
from perun.native.binary import is_probeable
from perun.native.columns import Ints

FOLDER: Final = Path(__file__).parents[1]
"""The folder into which the build puts the loader and the probes."""
ANY_METHOD: Final = "any"
SINGLE_EVENTS: Final = "perf_event"
"""The method for kernels before 6.6: one event for each probe, which takes 0.2 s to detach."""
MAX_EVENTS: Final = 200
"""Limit for single events, two for each function: detaching more takes over 40 seconds."""
# The constants of native/record.h.
MAX_FUNCTIONS: Final = 65536
EXIT: Final = 1 << 63
SIZED_BIT: Final = 62
_NUMBER: Final = (1 << 30) - 1
STACK: Final = _NUMBER
"""In place of the number of a function: the record holds a stack pointer."""
NO_THREAD: Final = 1 << 31
"""Set in the number of a goroutine, which stands in place of that of a thread."""
PAUSE: Final = _NUMBER - 1
"""In place of the number of a function: the record says for how long the loader has held up the thread."""
MAX_RETURNS: Final = 60
"""How many nested calls of a thread have their returns caught; the exits of deeper ones are probed."""
REATTACHED: Final = 20_000
"""Calls for which a function is probed again after dynamic-probing has detached it."""
_MISSING_LIBRARY: Final = re.compile(r"error while loading shared libraries: (?:\S*/)?([^:/]+):")
_ENDBR64: Final = b"\xf3\x0f\x1e\xfa"
_LONGEST: Final = 15
"""Bytes of an instruction at most."""


class EbpfEngine:
    """Runs the command under the loader.

    :cvar folder: where loader and probes are. :cvar forced_method: how to attach probes, for tests.
    """

    name: ClassVar[str] = "ebpf"
    switches: ClassVar[Mapping[str, str]] = {}
    folder: ClassVar[Path] = FOLDER
    forced_method: ClassVar[str] = ANY_METHOD

    def __init__(self, environ: Mapping[str, str], cache: Path | None = None) -> None:
        self.notes: list[str] = []
        self.missed = self.lost = 0
        self.method = ""
        self.correction: TimeCorrection | None = None
        self._environ = environ
        self._cache = cache
        self._uncaught = 0

    def unavailable(self, plan: TracePlan | None = None) -> tuple[str, str]:
        """See :meth:`TraceEngine.unavailable`: checks the build, the kernel, privileges and the plan."""
        if os.uname().machine != "x86_64":
            return f"it needs x86-64, but this machine is {os.uname().machine}", ""
        if not all((self.folder / name).is_file() for name in ("perun_trace", "trace.bpf.o")):
            return (
                "its probes were not built when Perun was installed",
                f"apt-get install clang libbpf-dev; then, in the sources of Perun: {reinstall_command()}",
            )
        if not os.path.exists("/sys/kernel/btf/vmlinux"):
            return "the kernel was built without BTF", "use --engine uftrace"
        if not _may_load():
            return "only root can attach probes", "run Perun as root, or use --engine uftrace"
        self.method, why = _find_method(self.folder / "perun_trace", self.forced_method)
        if not self.method and (library := _MISSING_LIBRARY.search(why)):
            return f"the library {library[1]} is missing", "apt-get install libelf1 zlib1g"
        if not self.method:
            return why, "use Linux 5.15 or later, or --engine uftrace"
        if plan and self.method == SINGLE_EVENTS and (events := _events(plan)) > MAX_EVENTS:
            return (
                f"Linux before 6.6 attaches probes one by one, which is too slow for more than {MAX_EVENTS} "
                f"probes (100 functions); the selected functions need {events}",
                "select functions with --strategy custom --func, or use --engine uftrace",
            )
        return "", ""

    def record(self, plan: TracePlan, context: EngineContext) -> TraceRecording:
        """Run the command with probes."""
        if len(plan.probes) + len(plan.pairs) > MAX_FUNCTIONS:
            raise CollectorUnavailable(
                f"the engine {self.name} traces at most {MAX_FUNCTIONS:,} functions, but more are selected",
                "select functions with --strategy custom --func",
            )
        records, summary = context.folder / "records", context.folder / "summary"
        file = context.folder / "plan"
        if context.follow:
            # What another program needs is not known yet: exits work in each, with exceptions too.
            plan = plan._replace(throws=True)
        code = self._code(plan)
        self._correct(plan, context, code)
        asking = f"A {context.folder}\n" if context.follow else ""
        file.write_text(asking + _switching_text(plan) + _plan_text(plan, code), "utf-8", "surrogateescape")
        loader, probes = self.folder / "perun_trace", self.folder / "trace.bpf.o"
        paths = map(str, (probes, file, records, summary))
        argv = [str(loader), self.method or self.forced_method, *paths, *context.run.command().argv]
        if context.follow:
            text_of = self._text_of(plan, code)
            with LoaderFollower(context.folder, context.follow, text_of, len(plan.probes)) as more:
                sample, errors = context.execute(argv, context.run.environ)
            plan = plan._replace(probes=(*plan.probes, *more.probes))
        else:
            sample, errors = context.execute(argv, context.run.environ)
        totals = _summary(summary)
        if "status" not in totals and sample.interruption is not None:
            raise sample.interruption  # before anything was recorded
        if "status" not in totals:
            lines = errors or [f"its loader {outcome(sample.status)}"]
            why = ": it cannot attach its probes: " + "; ".join(lines)
            raise nothing_recorded(self.name, sample, why, "use --engine uftrace")
        self.lost = int(totals.get("lost", 0))
        self._uncaught = int(totals.get("uncaught", 0))
        refused = [one.function for one in plan.probes if _entry(one, code.get(one.path)) < 0]
        if refused:
            names = listed([function.name for function in refused])
            self.notes.append(f"functions not traced, because the kernel cannot probe them: {names}")
        if unprobed := int(totals.get("unprobed", 0)):
            self.notes.append(f"locations not traced, because the kernel cannot probe them: {unprobed}")
        if "detaching" in totals:
            self.notes.append(
                "the kernel still removes the probes in the background, perhaps because it waits for another "
                "traced program"
            )
        if others := _executed(summary):
            self.notes.append(_untraced(others, more.refused if context.follow else None))
        if context.follow and more.probes:
            self.correction = None
            self._correct(plan, context, code)
        sampled = _sampled(plan, code)
        sample = sample._replace(status=int(totals["status"]))
        followed = plan if context.follow else None
        return TraceRecording(
            self._calls(plan, records),
            sample,
            errors,
            sampled=sampled,
            plan=followed,
            switched_off=_switched_off(summary),
        )

    def _correct(self, plan: TracePlan, context: EngineContext, code: Mapping[str, ProbeAddresses]) -> None:
        """Find out what recording costs, unless that is known."""
        ways = [ProbeMode.of(one, _is_emulated(one, code.get(one.path))) for one in plan.probes]
        sampled = _sampled(plan, code)
        self.correction = self.correction or correction(self, plan, context, ways, self._cache, sampled)

    def _text_of(
        self, plan: TracePlan, code: dict[str, ProbeAddresses]
    ) -> Callable[[Sequence[Probe], int], str]:
        """What gives the text for the loader of further probes, whose machine code is added to `code`."""

        def text(probes: Sequence[Probe], first: int) -> str:
            more = TracePlan(tuple(probes), (), True, plan.program)
            if first + len(probes) > MAX_FUNCTIONS:
                raise CollectorUnavailable(f"more than {MAX_FUNCTIONS:,} functions would be traced")
            if self.method == SINGLE_EVENTS and 2 * first + _events(more) > MAX_EVENTS:
                raise CollectorUnavailable(f"more than {MAX_EVENTS} probes are too slow with this kernel")
            code.update(self._code(more))
            return _plan_text(more, code, first)

        return text

    def _code(self, plan: TracePlan) -> dict[str, ProbeAddresses]:
        """Where to probe in each file; empty without a disassembler.

        :raises CollectorUnavailable: if the program throws exceptions, which needs a disassembler.
        """
        tool = which("objdump", path=self._environ.get("PATH", os.defpath))
        if not tool and plan.throws:
            raise CollectorUnavailable(
                "the engine ebpf needs objdump, because the program throws exceptions",
                "install it with: apt-get install binutils",
            )
        if not tool:
            return {}
        return {
            path: read_code(path, [probe for probe in plan.probes if probe.path == path], tool)
            for path in {probe.path for probe in plan.probes}
        }

    def _calls(self, plan: TracePlan, file: Path) -> Iterator[Calls]:
        nestings: dict[int, Nesting] = {}
        overhead = self.correction.overhead if self.correction else None
        # Decodes a piece by array operations: the words of the records, then the events of each thread.
        specs: list[Size | None] = [probe.size for probe in plan.probes] + [None for _ in plan.pairs]
        unwinding: dict[int, _Unwinding] = {}
        unpaired = [number for number, pair in enumerate(plan.pairs, len(plan.probes)) if not pair.end]
        hits = _UnpairedProbes(unpaired)
        pauses = _Pauses()
        epoch = -1
        last = 0
        for words in pieces(file):
            values = words.values
            at, words.consumed = boundaries(values, SIZED_BIT)
            if not len(at):
                continue
            head = values[at + 1]
            time = values[at].astype(np.int64)
            function = ((head >> np.uint64(32)) & np.uint64(_NUMBER)).astype(np.int64)
            is_event = function < PAUSE
            if epoch < 0 and is_event.any():
                epoch = int(time[is_event].min())
            time = np.where(is_event, time - epoch, time)
            last = max(last, int(time[is_event].max(initial=0)))
            thread = (head & np.uint64(0xFFFFFFFF)).astype(np.int64)
            entry = (head & np.uint64(EXIT)) == 0
            size = np.full(len(at), UNKNOWN, np.int64)
            has_size = np.flatnonzero((head & np.uint64(1 << SIZED_BIT)) != 0)
            if len(has_size):
                sums = values[at[has_size] + 2].view(np.int64)
                size[has_size] = _sizes(specs, function[has_size], sums)
            events = CallEvents(time, function, entry, size)
            order = np.argsort(thread, kind="stable")
            threads, starts = np.unique(thread[order], return_index=True)
            for number, rows in zip(threads.tolist(), np.split(order, starts[1:]), strict=True):
                own = pauses.left_out(number, events.where(rows))
                if plan.throws and not number & NO_THREAD:  # the stacks of goroutines move
                    own = unwinding.setdefault(number, _Unwinding()).completed(own)
                if hits.functions:
                    own, calls = hits.separated(number, own)
                    yield calls
                yield nestings.setdefault(number, Nesting(number, overhead)).add(own)
        for nesting in nestings.values():
            yield nesting.finish(last)
            self.missed += nesting.missed
        self.missed += sum(one.missed for one in unwinding.values())
        if self._uncaught:
            self.notes.append(
                f"the exits of {counted(self._uncaught, 'call')} nested more than {MAX_RETURNS} deep are not "
                "recorded: the kernel does not catch them, and their instructions are not known; install "
                "objdump (apt-get install binutils), and trace no program that makes PID namespaces"
            )


class _Pauses:
    """Takes out of the times of each thread for how long the loader has held it up."""

    def __init__(self) -> None:
        self._so_far: dict[int, int] = {}

    def left_out(self, thread: int, events: CallEvents) -> CallEvents:
        """The events of a thread without the records of pauses, as if there had been none."""
        before = self._so_far.get(thread, 0)
        is_pause = events.function == PAUSE
        if not before and not is_pause.any():
            return events
        total = before + np.where(is_pause, events.time, 0).cumsum()
        self._so_far[thread] = int(total[-1])
        is_event = events.function < PAUSE
        return events.replace(time=np.where(is_event, events.time - total, events.time)).where(~is_pause)


class _UnpairedProbes:
    """Probes without a closing one: each call lasts from one hit to the next one of the same thread."""

    def __init__(self, functions: Sequence[int]) -> None:
        self.functions = list(functions)
        self._last: dict[tuple[int, int], int] = {}
        self._count = 0

    def separated(self, thread: int, events: CallEvents) -> tuple[CallEvents, Calls]:
        """The events of all other probes, and the calls between the hits of these probes."""
        is_hit = np.isin(events.function, self.functions)
        rest = events.where(~is_hit)
        found = []
        for function in np.unique(events.function[is_hit]).tolist():
            time = events.time[events.function == function]
            before = self._last.get((thread, function))
            self._last[thread, function] = int(time[-1])
            start = time[:-1] if before is None else np.concatenate([[before], time[:-1]])
            duration = time[len(time) - len(start) :] - start
            ones = np.ones(len(start), np.int64)
            unknown = ones * UNKNOWN
            order = np.arange(self._count, self._count + len(start))
            self._count += len(start)
            found.append(
                Calls(ones * function, ones * thread, start, duration, duration, unknown, unknown, order)
            )
        return rest, Calls.joined(found)


class _Unwinding:
    """Ends the calls of one thread that an exception or longjmp has left, at the next entry in the thread.

    :ivar missed: number of these calls.
    """

    def __init__(self) -> None:
        self.missed = 0
        self._open: list[tuple[int, int]] = []
        self._stack = 0

    def completed(self, events: CallEvents) -> CallEvents:
        """The events with missing exits added, and records of the stack pointer removed."""
        kept: list[tuple[int, int, bool, int]] = []
        for time, function, entry, size in zip(*(column.tolist() for column in events), strict=True):
            if function == STACK:
                self._stack = time
                continue
            if entry:
                # The stack grows down: calls that were entered at this address or below it have ended.
                while self._open and self._open[-1][1] <= self._stack:
                    kept.append((time, self._open.pop()[0], False, UNKNOWN))
                    self.missed += 1
                self._open.append((function, self._stack))
            elif any(function == running for running, _ in self._open):
                while self._open[-1][0] != function:
                    kept.append((time, self._open.pop()[0], False, UNKNOWN))
                    self.missed += 1
                self._open.pop()
            kept.append((time, function, entry, size))
        columns = list(zip(*kept, strict=True)) or [()] * 4
        times, functions, entries, sizes = columns
        return CallEvents(
            np.array(times, np.int64),
            np.array(functions, np.int64),
            np.array(entries, np.bool_),
            np.array(sizes, np.int64),
        )


def _untraced(programs: Sequence[str], refused: Mapping[str, str] | None) -> str:
    """A note on programs that were executed and not traced.

    :param refused: where others were followed, why these were not, by their paths.
    """
    if refused is None:
        return (
            f"programs that the command executed and that are not traced: {listed(programs)}; trace them too "
            "with --follow-children, or one of them with --binary (-b)"
        )
    found = [f"{path} ({why})" for path, why in refused.items()]
    real = {os.path.realpath(path) for path in refused}
    found += [path for path in programs if os.path.realpath(path) not in real]
    return f"programs that the command executed and that are not traced: {listed(found)}"


def _sampled(plan: TracePlan, code: Mapping[str, ProbeAddresses]) -> frozenset[int]:
    """The numbers of the functions whose calls the kernel samples."""
    return frozenset(
        number for number, probe in enumerate(plan.probes) if _is_sampled(probe, code.get(probe.path))
    )


def _plan_text(plan: TracePlan, code: Mapping[str, ProbeAddresses], first: int = 0) -> str:
    """The plan in the format of `read_plan()` in native/plan.c.

    :param first: the number of its first probe.
    """
    lines: dict[str, list[str]] = {}
    for number, probe in enumerate(plan.probes, first):
        own = lines.setdefault(probe.path, [])
        address = probe.function.address
        shift = probe.function.offset - address  # from an address to a position in the file
        known = code.get(probe.path)
        entry = _entry(probe, known)
        if entry < 0:
            continue
        is_go = known is not None and known.is_go
        if plan.throws and known:
            own.append(f"e {entry + shift} {number} 0")
            own += [f"x {exit + shift} {number} 0" for exit in known.exits[address]]
        else:
            own.append(f"f {entry + shift} {number} 0")
        if not plan.throws and known and probe.sampling < 2:
            own += [f"d {exit + shift} {number} 0" for exit in known.exits[address] if exit != entry]
        if is_go:
            own.append(f"G {number}")
        if _is_sampled(probe, known):
            own.append(f"N {number} {probe.sampling}")
        if probe.size is not None or plan.throws:
            own.append(_size_line(number, probe.size, plan.throws and not is_go))
    for number, pair in enumerate(plan.pairs, first + len(plan.probes)):
        own = lines.setdefault(pair.path, [])
        own += [f"e {one.offset} {number} {one.semaphore}" for one in pair.start]
        own += [f"x {one.offset} {number} {one.semaphore}" for one in pair.end]
    return "".join(f"F {path}\n" + "".join(f"{line}\n" for line in own) for path, own in lines.items())


def _switching_text(plan: TracePlan) -> str:
    """The lines of the plan that say what the loader does while the program runs."""
    threshold, again, period = plan.switching
    lines = []
    if threshold:
        lines.append(f"P {threshold} {REATTACHED if again else 0}\n")
    if period:
        entry = plan.entry if plan.entry >= 0 else MAX_FUNCTIONS
        lines.append(f"T {max(round(period * 1000), 1)} {entry}\n")
    return "".join(lines)


def _switched_off(summary: Path) -> frozenset[int]:
    """The numbers of the functions that were not probed all the time."""
    lines = summary.read_text("utf-8", "surrogateescape").splitlines()
    return frozenset(int(line.split()[1]) for line in lines if line.startswith("switched "))


def _size_line(number: int, size: Size | None, follow: bool) -> str:
    if size is None:
        return f"S {number} 0 {int(follow)} 0"
    place = size.register if size.register >= 0 else -1 - size.stack
    terms = (
        f"{term.factor} {term.width} {int(term.signed)} {len(term.offsets)}"
        + "".join(f" {offset}" for offset in term.offsets)
        for term in size.terms
    )
    return f"S {number} {place} {int(follow)} {len(size.terms)} {' '.join(terms)}"


def _entry(probe: Probe, code: ProbeAddresses | None) -> int:
    """The address of the instruction to probe for the entry of a function; -1 where the kernel cannot."""
    return code.entries.get(probe.function.address, -1) if code else _after_endbr64(probe)


def _after_endbr64(probe: Probe) -> int:
    """The address of the first instruction of a function that is not `endbr64`, with which many begin; -1
    where the kernel cannot probe it."""
    try:
        with open(probe.path, "rb") as file:
            file.seek(probe.function.offset)
            code = file.read(len(_ENDBR64) + _LONGEST)
    except OSError:
        return probe.function.address
    skipped = len(_ENDBR64) if code.startswith(_ENDBR64) else 0
    return probe.function.address + skipped if is_probeable(code[skipped:]) else -1


def _is_sampled(probe: Probe, code: ProbeAddresses | None) -> bool:
    """Whether the kernel samples the calls of a function: it counts by threads, which goroutines are not."""
    return probe.sampling > 1 and not (code is not None and code.is_go)


def _is_emulated(probe: Probe, code: ProbeAddresses | None) -> bool:
    """Whether the kernel emulates the instruction with the probe, so that it costs less."""
    if code is not None:
        return probe.function.address in code.emulated
    try:
        with open(probe.path, "rb") as file:
            file.seek(_after_endbr64(probe) - probe.function.address + probe.function.offset)
            first = file.read(1)
    except OSError:
        return False
    return first == b"\x90" or b"\x50" <= first <= b"\x57"


def _sizes(specs: Sequence[Size | None], function: Ints, sums: Ints) -> Ints:
    size = np.full(len(sums), UNKNOWN, np.int64)
    for number in np.unique(function).tolist():
        spec = specs[number]
        if spec is not None:
            rows = function == number
            size[rows] = sizes_from_sums(spec, sums[rows])
    return size


def _find_method(loader: Path, wanted: str) -> tuple[str, str]:
    """The method by which the loader attaches probes on this kernel, or an empty text and why it cannot."""
    try:
        done = programs.run([loader, wanted])
    except OSError as problem:
        return "", f"its loader {loader} does not start: {problem.strerror}"
    why = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0].removeprefix("perun_trace: ")
    return done.stdout.decode("utf-8", "replace").strip(), why or f"its loader ended with status {done.code}"


def _events(plan: TracePlan) -> int:
    """The number of single events that the probes of a plan need."""
    return 2 * len(plan.probes) + sum(len(pair.start) + len(pair.end) for pair in plan.pairs)


def _summary(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return {}
    return dict(line.partition(" ")[::2] for line in lines)


def _executed(summary: Path) -> list[str]:
    """The programs that the command executed and that are not traced."""
    lines = summary.read_text("utf-8", "surrogateescape").splitlines()
    return [line.split(" ", 2)[2] for line in lines if line.startswith("executed ")]


def _may_load() -> bool:
    """Whether this process has the capabilities BPF and PERFMON, or SYS_ADMIN."""
    try:
        status = Path("/proc/self/status").read_text("utf-8")
    except OSError:
        return False
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    effective = int(found[1], 16) if found else 0
    return bool(effective >> 21 & 1) or bool(effective >> 39 & 1 and effective >> 38 & 1)
