"""The engine `ebpf`: probes of the kernel at the entry and the exit of functions. It needs root.

A loader, which is built together with Perun, attaches them and writes what they record; see `native/`. It has
three ways to do so and takes the best one that the kernel has. A probe costs as much as the instruction it
stands at: where that is best is found out by :mod:`perun.collect.trace.engines.instructions`.

The kernel catches returns by changing the return address on the stack. Exceptions of C++ do not survive that,
so in a program that throws the probes stand at the instructions that return instead; and which calls an
exception has ended is found out by the stack pointer at the next entry.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from perun.collect._calls.events import UNKNOWN, Calls, Events
from perun.collect._calls.nesting import Nesting
from perun.collect._calls.sizes import Size
from perun.collect._common.columns import Ints
from perun.collect.trace.engines import EngineContext, Recorded
from perun.collect.trace.engines.instructions import Code, read_code
from perun.collect.trace.engines.records import boundaries, divided, pieces
from perun.collect.trace.plan import Plan, Probe
from perun.errors import CollectorUnavailable
from perun.process.outcome import outcome

FOLDER: Final = Path(__file__).parents[1]
"""Where the build puts the loader and the probes."""
ANY_WAY: Final = "any"
ONE_BY_ONE: Final = "perf_event"
"""How kernels before 6.6 attach probes: as single events, which take a fifth of a second each to detach."""
MAX_EVENTS: Final = 200
"""Limit for single events, two for each function: detaching more takes over 40 seconds."""
MAX_FUNCTIONS: Final = 65536
EXIT: Final = 1 << 63
SIZED_BIT: Final = 62
_NUMBER: Final = (1 << 30) - 1
STACK: Final = _NUMBER
"""Number of the records that hold a stack pointer."""
DEEPEST_RETURN: Final = 64
"""Depth of nested calls up to which the kernel catches returns."""
_MARKER: Final = b"\xf3\x0f\x1e\xfa"


class EbpfEngine:
    """Attaches probes with the loader.

    :cvar folder: where loader and probes are. :cvar forced: the way to attach probes, for tests.
    """

    name: ClassVar[str] = "ebpf"
    folder: ClassVar[Path] = FOLDER
    forced: ClassVar[str] = ANY_WAY

    def __init__(self, environ: Mapping[str, str], cache: Path | None = None) -> None:
        self.notes: list[str] = []
        self.missed = self.lost = 0
        self.way = ""
        self._environ = environ

    def unavailable(self, plan: Plan | None = None) -> tuple[str, str]:
        """Why the engine cannot run, because of the build, the kernel, missing privileges or the plan."""
        if os.uname().machine != "x86_64":
            return f"it needs x86-64, but this machine is {os.uname().machine}", ""
        if not all((self.folder / name).is_file() for name in ("perun_trace", "trace.bpf.o")):
            return (
                "its probes were not built",
                "apt-get install clang libbpf-dev, and reinstall Perun from its sources",
            )
        if not os.path.exists("/sys/kernel/btf/vmlinux"):
            return "the kernel was built without BTF", "use --engine uftrace"
        if not _may_load():
            return "only root can attach probes", "run Perun as root, or use --engine uftrace"
        self.way, why = _way(self.folder / "perun_trace", self.forced)
        if not self.way:
            return why, "use Linux 5.15 or later, or --engine uftrace"
        if plan and self.way == ONE_BY_ONE and (events := _events(plan)) > MAX_EVENTS:
            return (
                f"Linux before 6.6 attaches probes one by one, which is too slow for more than {MAX_EVENTS} "
                f"(100 functions); {events} are selected",
                "select functions with --strategy custom --func, or use --engine uftrace",
            )
        return "", ""

    def record(self, plan: Plan, context: EngineContext) -> Recorded:
        """Run the command with probes."""
        if len(plan.probes) + len(plan.pairs) > MAX_FUNCTIONS:
            raise CollectorUnavailable(
                f"more than {MAX_FUNCTIONS} functions are selected", "select functions with --func"
            )
        records, summary = context.folder / "records", context.folder / "summary"
        file = context.folder / "plan"
        code = self._code(plan)
        file.write_text(_plan_text(plan, code), "utf-8", "surrogateescape")
        loader = [str(self.folder / "perun_trace"), self.way or self.forced, str(self.folder / "trace.bpf.o")]
        argv = [*loader, str(file), str(records), str(summary), *context.run.command().argv]
        sample, errors = context.execute(argv, context.run.environ)
        totals = _summary(summary)
        if "status" not in totals and sample.interruption is not None:
            raise sample.interruption  # before anything was recorded
        if "status" not in totals:
            lines = errors or [f"its loader {outcome(sample.status)}"]
            raise CollectorUnavailable("the probes could not be attached: " + "; ".join(lines), "")
        self.lost = int(totals.get("lost", 0))
        refused = [
            one.function for one in plan.probes if code and one.function.address not in code[one.path].entries
        ]
        if refused:
            names = ", ".join(function.name for function in refused[:3])
            more = f" and {len(refused) - 3} more" if len(refused) > 3 else ""
            self.notes.append(f"functions not traced, because the kernel cannot probe them: {names}{more}")
        if unprobed := int(totals.get("unprobed", 0)):
            self.notes.append(f"locations not traced, because the kernel cannot probe them: {unprobed}")
        if "detaching" in totals:
            self.notes.append(
                "the kernel still removes the probes in the background: it may be waiting for another "
                "traced program"
            )
        sample = sample._replace(status=int(totals["status"]))
        return Recorded(self._calls(plan, records), sample, errors)

    def _code(self, plan: Plan) -> dict[str, Code]:
        """The probe positions in each file; empty where there is no disassembler.

        :raises CollectorUnavailable: where it cannot be done without.
        """
        from shutil import which

        tool = which("objdump", path=self._environ.get("PATH", os.defpath))
        if not tool and plan.throws:
            raise CollectorUnavailable(
                "the program throws exceptions, and objdump, which finds its return instructions, is missing",
                "install it with: apt-get install binutils",
            )
        if not tool:
            return {}
        return {
            path: read_code(path, [probe for probe in plan.probes if probe.path == path], tool)
            for path in {probe.path for probe in plan.probes}
        }

    def _calls(self, plan: Plan, file: Path) -> Iterator[Calls]:
        nestings: dict[int, Nesting] = {}
        specs: list[Size | None] = [probe.size for probe in plan.probes] + [None for _ in plan.pairs]
        unwinding: dict[int, _Unwinding] = {}
        unpaired = [number for number, pair in enumerate(plan.pairs, len(plan.probes)) if not pair.end]
        hits = _UnpairedProbes(unpaired)
        epoch = -1
        last = 0
        for words in pieces(file):
            values = words.values
            at, words.consumed = boundaries(values, SIZED_BIT)
            if not len(at):
                continue
            head = values[at + 1]
            time = values[at].astype(np.int64)
            is_stack = (head >> np.uint64(32)) & np.uint64(_NUMBER) == np.uint64(STACK)
            if epoch < 0 and not is_stack.all():
                epoch = int(time[~is_stack].min())
            time = np.where(is_stack, time, time - epoch)
            last = max(last, int(time[~is_stack].max(initial=0)))
            function = ((head >> np.uint64(32)) & np.uint64(_NUMBER)).astype(np.int64)
            thread = (head & np.uint64(0xFFFFFFFF)).astype(np.int64)
            entry = (head & np.uint64(EXIT)) == 0
            size = np.full(len(at), UNKNOWN, np.int64)
            sized = np.flatnonzero((head & np.uint64(1 << SIZED_BIT)) != 0)
            if len(sized):
                sums = values[at[sized] + 2].view(np.int64)
                size[sized] = _sizes(specs, function[sized], sums)
            events = Events(time, function, entry, size)
            order = np.argsort(thread, kind="stable")
            threads, starts = np.unique(thread[order], return_index=True)
            for number, mine in zip(threads.tolist(), np.split(order, starts[1:]), strict=True):
                own = events.where(mine)
                if plan.throws:
                    own = unwinding.setdefault(number, _Unwinding()).completed(own)
                if hits.functions:
                    own, between = hits.taken(number, own)
                    yield between
                yield nestings.setdefault(number, Nesting(number)).add(own)
        for nesting in nestings.values():
            yield nesting.finish(last)
            self.missed += nesting.missed
        self.missed += sum(one.missed for one in unwinding.values())
        if self.missed and not plan.throws:
            self.notes.append(
                f"the kernel catches the returns of at most {DEEPEST_RETURN} nested calls; the exits of "
                "deeper calls count as missed"
            )


class _UnpairedProbes:
    """Probes without a closing one: each call lasts from one hit to the next one of the same thread."""

    def __init__(self, functions: Sequence[int]) -> None:
        self.functions = list(functions)
        self._last: dict[tuple[int, int], int] = {}
        self._count = 0

    def taken(self, thread: int, events: Events) -> tuple[Events, Calls]:
        """The events of all other probes, and the calls that the hits make."""
        mine = np.isin(events.function, self.functions)
        rest = events.where(~mine)
        made = []
        for function in np.unique(events.function[mine]).tolist():
            time = events.time[events.function == function]
            before = self._last.get((thread, function))
            self._last[thread, function] = int(time[-1])
            start = time[:-1] if before is None else np.concatenate([[before], time[:-1]])
            duration = time[len(time) - len(start) :] - start
            same = np.ones(len(start), np.int64)
            order = np.arange(self._count, self._count + len(start))
            self._count += len(start)
            made.append(
                Calls(same * function, same * thread, start, duration, duration, -same, same * UNKNOWN, order)
            )
        return rest, Calls.joined(made)


class _Unwinding:
    """Ends the calls of one thread that an exception or a longjmp left, at the next entry that shows it.

    :ivar missed: how many there were.
    """

    def __init__(self) -> None:
        self.missed = 0
        self._open: list[tuple[int, int]] = []
        self._stack = 0

    def completed(self, events: Events) -> Events:
        """The events with missing exits added, and records of the stack pointer removed."""
        kept: list[tuple[int, int, bool, int]] = []
        for time, function, entry, size in zip(*(column.tolist() for column in events), strict=True):
            if function == STACK:
                self._stack = time
                continue
            if entry:
                # The stack grows down: what was entered at this address or below it is gone.
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
        return Events(
            np.array(times, np.int64),
            np.array(functions, np.int64),
            np.array(entries, np.bool_),
            np.array(sizes, np.int64),
        )


def _plan_text(plan: Plan, code: Mapping[str, Code]) -> str:
    """The plan as the loader reads it."""
    lines: dict[str, list[str]] = {}
    for number, probe in enumerate(plan.probes):
        own = lines.setdefault(probe.path, [])
        address = probe.function.address
        moved = probe.function.offset - address
        known = code.get(probe.path)
        entry = known.entries.get(address, -1) if known else _after_marker(probe)
        if entry < 0:
            continue
        if plan.throws and known:
            own.append(f"e {entry + moved} {number} 0")
            own += [f"x {leaving + moved} {number} 0" for leaving in known.leaving[address]]
        else:
            own.append(f"f {entry + moved} {number} 0")
        if probe.size is not None or plan.throws:
            own.append(_size_line(number, probe.size, plan.throws))
    for number, pair in enumerate(plan.pairs, len(plan.probes)):
        own = lines.setdefault(pair.path, [])
        own += [f"e {one.offset} {number} {one.semaphore}" for one in pair.start]
        own += [f"x {one.offset} {number} {one.semaphore}" for one in pair.end]
    return "".join(f"F {path}\n" + "".join(f"{line}\n" for line in own) for path, own in lines.items())


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


def _after_marker(probe: Probe) -> int:
    """Where a function goes on after the marker `endbr64`, which many begin with."""
    try:
        with open(probe.path, "rb") as file:
            file.seek(probe.function.offset)
            has_marker = file.read(len(_MARKER)) == _MARKER
    except OSError:
        has_marker = False
    return probe.function.address + has_marker * len(_MARKER)


def _sizes(specs: Sequence[Size | None], function: Ints, sums: Ints) -> Ints:
    size = np.full(len(sums), UNKNOWN, np.int64)
    for number in np.unique(function).tolist():
        spec = specs[number]
        if spec is not None:
            mine = function == number
            size[mine] = divided(spec, sums[mine])
    return size


def _way(loader: Path, wanted: str) -> tuple[str, str]:
    """How the loader attaches probes here, or why it cannot."""
    import subprocess

    try:
        done = subprocess.run([loader, wanted], capture_output=True, text=True, errors="replace", check=False)
    except OSError as problem:
        return "", f"its loader cannot be started: {problem.strerror}"
    why = done.stderr.strip().partition("\n")[0].removeprefix("perun_trace: ")
    return done.stdout.strip(), why or f"its loader ended with status {done.returncode}"


def _events(plan: Plan) -> int:
    """How many events the probes of a plan are, where they are attached one by one."""
    return 2 * len(plan.probes) + sum(len(pair.start) + len(pair.end) for pair in plan.pairs)


def _summary(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except OSError:
        return {}
    return dict(line.partition(" ")[::2] for line in lines)


def _may_load() -> bool:
    """Whether this process has the capabilities BPF and PERFMON, or SYS_ADMIN."""
    try:
        status = Path("/proc/self/status").read_text("utf-8")
    except OSError:
        return False
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    effective = int(found[1], 16) if found else 0
    return bool(effective >> 21 & 1) or bool(effective >> 39 & 1 and effective >> 38 & 1)
