"""The engine `ebpf`: probes of the kernel at the entry and the exit of functions. It needs root.

A loader, which is built together with Perun, attaches them and writes what they record; see `native/`.
A probe costs as much as the instruction it stands at, and the kernel emulates few of them: a probe never
stands at the marker `endbr64` that functions begin with.

The kernel catches returns by changing the return address on the stack. Exceptions of C++ do not survive that,
so in a program that throws the probes stand at the instructions that return instead; and which calls an
exception has ended is found out by the stack pointer at the next entry.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from perun.collect._calls.binary import Function
from perun.collect._calls.events import UNKNOWN, Calls, Events, Ints
from perun.collect._calls.nesting import Nesting
from perun.collect._calls.sizes import Size
from perun.collect.trace.engines import Recorded
from perun.collect.trace.engines.records import boundaries, divided, pieces
from perun.collect.trace.plan import Plan, Probe
from perun.collect.trace.running import Surroundings, execute
from perun.errors import CollectorUnavailable

FOLDER: Final = Path(__file__).parents[1]
"""Where the build puts the loader and the probes."""
OLDEST_KERNEL: Final = (6, 6)
"""The first one that attaches many probes at once."""
MOST_FUNCTIONS: Final = 65536
_FAILED: Final = 125
_EXIT: Final = 1 << 63
_SIZED_BIT: Final = 62
_NUMBER: Final = (1 << 30) - 1
_STACK: Final = _NUMBER
"""Number of the records that hold a stack pointer."""
DEEPEST_RETURN: Final = 64
"""Calls within each other whose returns the kernel catches."""
_MARKER: Final = b"\xf3\x0f\x1e\xfa"
_INSTRUCTION: Final = re.compile(r"^ *([0-9a-f]+):\s+(?:(?:repz|rep|bnd|notrack) )?(\w+)\s*(.*)$")
_COLD: Final = re.compile(r"<[^>]*\.cold[^>]*>")
_FREE_REGISTERS: Final = frozenset(
    f"%{name}"
    for name in (
        *("rax", "eax", "rbx", "ebx", "rbp", "ebp"),
        *(f"r{number}{part}" for number in range(10, 16) for part in ("", "d")),
    )
)
"""Registers that hold neither a parameter nor the stack pointer."""


class EbpfEngine:
    """Attaches probes with the loader.

    :param folder: where loader and probes are, where that is not beside this package.
    """

    name: ClassVar[str] = "ebpf"
    folder: ClassVar[Path] = FOLDER

    def __init__(self, environ: Mapping[str, str], cache: Path | None = None) -> None:
        self.notes: list[str] = []
        self.missed = self.lost = 0
        self._environ = environ

    def unavailable(self) -> tuple[str, str]:
        """Whether it was not built, or the kernel or the user cannot."""
        if os.uname().machine != "x86_64":
            return f"it is for x86-64, and this is {os.uname().machine}", ""
        if not all((self.folder / name).is_file() for name in ("perun_trace", "trace.bpf.o")):
            return (
                "its probes were not built",
                "apt-get install clang libbpf-dev, and install Perun anew from its sources",
            )
        version = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
        if version < OLDEST_KERNEL:
            return f"it needs Linux 6.6 or newer, and this is {os.uname().release}", "use --engine uftrace"
        if not os.path.exists("/sys/kernel/btf/vmlinux"):
            return "the kernel was built without BTF", "use --engine uftrace"
        if not _may_load():
            return "only root may attach probes", "run Perun as root, or use --engine uftrace"
        return "", ""

    def record(self, plan: Plan, around: Surroundings) -> Recorded:
        """Run the command with probes."""
        if len(plan.probes) + len(plan.pairs) > MOST_FUNCTIONS:
            raise CollectorUnavailable(
                f"there are more than {MOST_FUNCTIONS} functions", "name those to trace with --func"
            )
        records, summary = around.folder / "records", around.folder / "summary"
        file = around.folder / "plan"
        code = self._code(plan)
        file.write_text(_plan_text(plan, code), "utf-8", "surrogateescape")
        loader = [str(self.folder / name) for name in ("perun_trace", "trace.bpf.o")]
        argv = [*loader, str(file), str(records), str(summary), *around.run.command().argv]
        ended = execute(around, argv, around.run.environ)
        told = _summary(summary)
        if "status" not in told and ended.early != "interrupted":
            lines = [line for line in around.last_errors() if line] or [f"it ended with {ended.status}"]
            raise CollectorUnavailable("the probes could not be attached: " + "; ".join(lines), "")
        self.lost = int(told.get("lost", 0))
        return Recorded(self._calls(plan, records), int(told.get("status", 0)), ended.early, ended.real)

    def _code(self, plan: Plan) -> dict[str, Code]:
        """What the instructions of each file tell; nothing where there is no disassembler.

        :raises CollectorUnavailable: where it cannot be done without.
        """
        from shutil import which

        tool = which("objdump", path=self._environ.get("PATH", os.defpath))
        if not tool and plan.throws:
            raise CollectorUnavailable(
                "the program throws exceptions, and the objdump that finds its returns is not there",
                "install it with: apt-get install binutils",
            )
        if not tool:
            return {}
        return {
            path: read_code(path, [probe.function for probe in plan.probes if probe.path == path], tool)
            for path in {probe.path for probe in plan.probes}
        }

    def _calls(self, plan: Plan, file: Path) -> Iterator[Calls]:
        nestings: dict[int, Nesting] = {}
        specs: list[Size | None] = [probe.size for probe in plan.probes] + [None for _ in plan.pairs]
        unwinding: dict[int, _Unwinding] = {}
        hits = _Hits([len(plan.probes) + number for number, pair in enumerate(plan.pairs) if not pair.end])
        epoch = -1
        last = 0
        for words in pieces(file):
            values = words.values
            at, words.consumed = boundaries(values, _SIZED_BIT)
            if not len(at):
                continue
            head = values[at + 1]
            time = values[at].astype(np.int64)
            is_stack = (head >> np.uint64(32)) & np.uint64(_NUMBER) == np.uint64(_STACK)
            if epoch < 0 and not is_stack.all():
                epoch = int(time[~is_stack].min())
            time = np.where(is_stack, time, time - epoch)
            last = max(last, int(time[~is_stack].max(initial=0)))
            function = ((head >> np.uint64(32)) & np.uint64(_NUMBER)).astype(np.int64)
            thread = (head & np.uint64(0xFFFFFFFF)).astype(np.int64)
            entry = (head & np.uint64(_EXIT)) == 0
            size = np.full(len(at), UNKNOWN, np.int64)
            sized = np.flatnonzero((head & np.uint64(1 << _SIZED_BIT)) != 0)
            if len(sized):
                sums = values[at[sized] + 2].view(np.int64)
                size[sized] = _sizes(specs, function[sized], sums)
            events = Events(time, function, entry, size)
            order = np.argsort(thread, kind="stable")
            threads, starts = np.unique(thread[order], return_index=True)
            for number, mine in zip(threads.tolist(), np.split(order, starts[1:]), strict=True):
                own = _chosen(events, mine)
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
                f"the kernel catches the returns of {DEEPEST_RETURN} calls within each other; those of "
                "deeper ones count as missing"
            )


class _Hits:
    """Probes without a partner: time is measured from one hit to the next one of the same thread."""

    def __init__(self, functions: Sequence[int]) -> None:
        self.functions = list(functions)
        self._last: dict[tuple[int, int], int] = {}
        self._count = 0

    def taken(self, thread: int, events: Events) -> tuple[Events, Calls]:
        """The events without those of such probes, and what they make."""
        mine = np.isin(events.function, self.functions)
        rest = _chosen(events, ~mine)
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
    """Ends the calls of one thread that an exception or a jump has left, where the next entry shows it.

    :ivar missed: how many there were.
    """

    def __init__(self) -> None:
        self.missed = 0
        self._open: list[tuple[int, int]] = []
        self._stack = 0

    def completed(self, events: Events) -> Events:
        """The events with the exits that are missing, and without the records of the stack pointer."""
        kept: list[tuple[int, int, bool, int]] = []
        for time, function, entry, size in zip(*(column.tolist() for column in events), strict=True):
            if function == _STACK:
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


def _chosen(events: Events, rows: Any) -> Events:
    return Events(events.time[rows], events.function[rows], events.entry[rows], events.size[rows])


class Code(NamedTuple):
    """What the instructions of functions tell, by the addresses of the functions.

    :ivar entries: where to probe the entry: the first instruction that the kernel emulates, where the
        instructions before it change no parameter and not the stack; else the address of the function.
    :ivar leaving: returns, and jumps into other functions.
    """

    entries: dict[int, int]
    leaving: dict[int, list[int]]


def read_code(path: str, functions: Sequence[Function], tool: str) -> Code:
    """Disassemble functions of a file with `objdump`."""
    import subprocess
    from bisect import bisect_right

    ordered = sorted((function.address, function.address + function.size) for function in functions)
    starts = [start for start, _ in ordered]
    code = Code({start: start for start in starts}, {start: [] for start in starts})
    undecided = set(starts)
    if not starts:
        return code
    span = (f"--start-address={starts[0]}", f"--stop-address={ordered[-1][1]}")
    command = [tool, "--disassemble", "--no-show-raw-insn", "-w", *span, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            instruction = _INSTRUCTION.match(line)
            if not instruction:
                continue
            address, name, operands = int(instruction[1], 16), instruction[2], instruction[3]
            place = bisect_right(starts, address) - 1
            if place < 0 or address >= ordered[place][1]:
                continue
            start, end = ordered[place]
            if start in undecided and not _is_harmless(name, operands):
                undecided.discard(start)
                if name == "push" and operands.startswith("%"):
                    code.entries[start] = address
            if name.startswith("ret") or (name == "jmp" and _is_tail_call(operands, start, end)):
                code.leaving[start].append(address)
    return code


def _is_harmless(name: str, operands: str) -> bool:
    """Whether an instruction leaves the parameters and the stack as they are, and goes on to the next one."""
    if name.startswith("endbr") or name in ("test", "cmp", "testb", "cmpb", "testl", "cmpl", "testq", "cmpq"):
        return True
    target = operands.rpartition(",")[2].split(" ")[0]
    return name.startswith(("mov", "lea", "xor")) and target in _FREE_REGISTERS


def _is_tail_call(operands: str, start: int, end: int) -> bool:
    target = operands.split(" ")[0]
    if not re.fullmatch("[0-9a-f]+", target) or _COLD.search(operands):
        return False
    return not start <= int(target, 16) < end


def _plan_text(plan: Plan, code: Mapping[str, Code]) -> str:
    """The plan as the loader reads it."""
    lines: dict[str, list[str]] = {}
    for number, probe in enumerate(plan.probes):
        own = lines.setdefault(probe.path, [])
        address = probe.function.address
        moved = probe.function.offset - address
        known = code.get(probe.path)
        entry = known.entries[address] if known else address
        if entry == address and _has_marker(probe):
            entry += len(_MARKER)
        own.append(f"e {entry + moved} {number} 0")
        if plan.throws and known:
            own += [f"x {leaving + moved} {number} 0" for leaving in known.leaving[address]]
        else:
            own.append(f"r {entry + moved} {number} 0")
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


def _has_marker(probe: Probe) -> bool:
    try:
        with open(probe.path, "rb") as file:
            file.seek(probe.function.offset)
            return file.read(len(_MARKER)) == _MARKER
    except OSError:
        return False


def _sizes(specs: Sequence[Size | None], function: Ints, sums: Ints) -> Ints:
    size = np.full(len(sums), UNKNOWN, np.int64)
    for number in np.unique(function).tolist():
        spec = specs[number]
        if spec is not None:
            mine = function == number
            size[mine] = divided(spec, sums[mine])
    return size


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
