"""Plans what to trace in programs that the command executes, while it runs (`--follow-children`).

The loader of the engine `ebpf` stops a process that executes a program which is not traced, and asks for its
probes by a pipe; `native/follow.c` is the other side.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from perun.collect.trace.plan import Probe, TracePlan
from perun.core.atomic import write_all
from perun.core.errors import PerunError
from perun.core.process import ending, programs
from perun.native.binary import Binary, is_probeable

if TYPE_CHECKING:
    from perun.collect._calls.sizes import Size


ASK: Final = "ask"
ANSWER: Final = "answer"
_READ: Final = 1 << 16


class LoaderFollower:
    """Answers the loader from entering to leaving the context.

    :ivar probes: of all programs that were followed, in the order of their numbers.
    :ivar refused: paths of programs in which nothing is traced, and why.
    """

    def __init__(
        self,
        folder: Path,
        plan_of: Callable[[str], TracePlan],
        text_of: Callable[[Sequence[Probe], int], str],
        count: int,
    ) -> None:
        """:param folder: for the pipes and plans. :param plan_of: the plan of the program at a path, or a
        :class:`PerunError`. :param text_of: probes for the loader, with the number of the first one.
        :param count: of the probes that are planned already.
        """
        self.probes: list[Probe] = []
        self.refused: dict[str, str] = {}
        self._folder = folder
        self._plan_of = plan_of
        self._text_of = text_of
        self._count = count
        self._plans = 0
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._serve, name="following", daemon=True)

    def __enter__(self) -> Self:
        for name in (ASK, ANSWER):
            os.mkfifo(self._folder / name, 0o600)
        # Opened for both directions, which waits for nobody.
        self._ask, self._answer = (os.open(self._folder / name, os.O_RDWR) for name in (ASK, ANSWER))
        ending.start(self._thread)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.write(self._ask, b"\n")
        self._thread.join()
        for file, name in ((self._ask, ASK), (self._answer, ANSWER)):
            os.close(file)
            (self._folder / name).unlink()
        if self._failure is not None and problem is None:
            raise self._failure

    def _serve(self) -> None:
        pending = b""
        while True:
            *lines, pending = (pending + os.read(self._ask, _READ)).split(b"\n")
            for line in lines:
                if not line:
                    return
                write_all(self._answer, self._plan(os.fsdecode(line)) + b"\n")

    def _plan(self, path: str) -> bytes:
        """The path of the plan for a program; empty if nothing of it is traced. The program waits for it."""
        try:
            plan = self._plan_of(path)
            text = self._text_of(plan.probes, self._count + len(self.probes))
            file = self._folder / f"plan.{self._plans}"
            file.write_text(text, "utf-8", "surrogateescape")
        except PerunError as problem:
            self.refused[path] = problem.message
            return b""
        except BaseException as failure:  # raised where the run ends: until then the program must not wait
            self._failure = failure
            return b""
        self._plans += 1
        self.probes += plan.probes
        return os.fsencode(file)


# Where the engine `ebpf` puts its probes: at the best instruction for an entry, and at the exits.
#
# The cost of a probe depends on its instruction. The kernel emulates `push` of a register, `nop`, and jumps
# and calls with a fixed target; all others the processor executes in a single step, which takes ten times as
# long or more. So the probe of an entry moves to the first emulated instruction that every call executes
# exactly once, if the instructions before it change nothing that the probe reads.

NOWHERE: Final = -1
MAX_PASSED: Final = 16
"""The most instructions that a probe may skip: their time is missing from the call."""
_LONGEST_INSTRUCTION: Final = 15
_REACH: Final = (MAX_PASSED + 1) * _LONGEST_INSTRUCTION
_COLD_REACH: Final = 1 << 16
"""How many bytes are disassembled of the last cold part, which the compiler puts away from its function."""
_LINE: Final = re.compile(r"^ *([0-9a-f]+):\t([0-9a-f ]+)\t(?:(?:repz|rep|bnd) )?(\w+)\s*(.*)$")
_TARGET: Final = re.compile(r"([0-9a-f]+)(?: <(.*)>)?$")
_BRANCHES: Final = ("j", "call", "loop", "xbegin")
_PIECES: Final = (
    *((f"r{name}x", (f"e{name}x", f"{name}x", f"{name}l", f"{name}h")) for name in "abcd"),
    *((f"r{name}", (f"e{name}", name, f"{name}l")) for name in ("si", "di", "bp", "sp")),
    *((f"r{number}", tuple(f"r{number}{part}" for part in "dwb")) for number in range(8, 16)),
)
_REGISTERS: Final = {f"%{name}": whole for whole, parts in _PIECES for name in (whole, *parts)}
_PARAMETERS: Final = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_STACK: Final = "rsp"
_MEMORY: Final = "memory"
_READING: Final = re.compile(r"(test|cmp|bt)[bwlq]?|v?u?comis[sd]|v?ptest")
_WRITING: Final = re.compile(
    r"(mov|movabs|movs[bwl]|movz[bw]|lea|add|sub|imul|and|andn|or|xor|not|neg|inc|dec|shl|shr|sar|sal|rol"
    r"|ror|bswap|popcnt|[lt]zcnt|bs[fr]|sarx|shlx|shrx)[bwlq]?|set[a-z]+|cmov[a-z]+"
    r"|v?(add|sub|mul|andn?|x?or|unpck[lh]|shuf|mov[auhl])[ps][sd]|v?mov(s[sd]|d|q|dq[au])|v?cvt[a-z0-9]+"
    r"|v?p(x?or|andn?|unpck[a-z]+|shuf[a-z]+|add[bwdq]|sub[bwdq])"
)
"""Instructions that write only their last operand. Missing are slow ones, those that compare and exchange or
repeat, and those that write registers which they do not name."""
_PREFIXES: Final = ("lock", "cs", "ds", "es", "ss", "notrack", "xacquire", "xrelease")
"""The kernel refuses probes at instructions with one of these prefixes."""
_GO_LIMIT: Final = "(%r14)"
"""Go compares the stack pointer with a limit of the goroutine, to which this register points."""
_EXTENDING: Final = {"cltq": "rax", "cwtl": "rax", "cbtw": "rax", "cltd": "rdx", "cqto": "rdx", "cwtd": "rdx"}


class ProbeAddresses(NamedTuple):
    """Where to probe functions, by the addresses of the functions.

    :ivar entries: the instruction for the entry; without the functions for which the kernel refuses probes.
    :ivar exits: the returns, and jumps into other functions.
    :ivar emulated: the functions whose entry the kernel emulates, which costs a fraction of a single step.
    :ivar is_go: whether Go compiled the file.
    """

    entries: dict[int, int]
    exits: dict[int, list[int]]
    emulated: frozenset[int] = frozenset()
    is_go: bool = False


_NO_CHECK, _COMPARED, _CHECKED, _BEHIND = range(4)


class _Function:
    """What is known of a function while its instructions are read.

    :ivar first: its first instruction behind `endbr64`.
    :ivar needed: registers, or memory, that the probe reads and that must be as they are at the entry.
    :ivar emulated: instructions in the straight line from the entry that the kernel emulates, and whether
        each is a `push`.
    :ivar padding: those that only newer kernels emulate: `nop` of several bytes.
    :ivar slow: where the kernel refuses a probe at the first instruction, those that may be probed.
    :ivar passed: the number of instructions in the straight line so far; -1 once it has ended.
    :ivar targets: targets of jumps near the entry.
    :ivar has_indirect_jumps: whether it jumps to addresses that are not known.
    :ivar grown: state of the check of Go whether the stack has to grow: after that the function begins anew.
    :ivar is_refused: whether the kernel refuses a probe at its first instruction.
    """

    def __init__(self, start: int, end: int, needed: frozenset[str]) -> None:
        self.start = start
        self.end = end
        self.first = start
        self.needed = needed
        self.emulated: list[tuple[int, bool]] = []
        self.padding: list[tuple[int, bool]] = []
        self.slow: list[tuple[int, bool]] = []
        self.passed = 0
        self.targets: set[int] = set()
        self.has_indirect_jumps = self.is_refused = False
        self.grown = _NO_CHECK
        self.exits: list[int] = []

    def extend(self, address: int, code: bytes, name: str, operands: str) -> None:
        """Add the next instruction to the straight line from the entry, or end the line."""
        if name.startswith("endbr") and address == self.start:
            self.first = address + 4
            return
        is_refused = name in _PREFIXES or not is_probeable(code)
        if is_refused and address == self.first:
            self.is_refused = self.first == self.start
            self.first = self.start
        if self.grown == _CHECKED:
            self.first, self.grown = address, _BEHIND
            self.emulated.clear()
            self.padding.clear()
        elif _GO_LIMIT in operands and name.startswith("cmp") and self.grown == _NO_CHECK:
            self.grown = _COMPARED
        elif self.grown == _COMPARED and name.startswith("j"):
            self.grown = _CHECKED
            return
        is_push = name == "push" and operands in _REGISTERS
        if is_push or _is_emulated(name, operands):
            self.emulated.append((address, is_push))
        elif name.startswith("nop"):
            self.padding.append((address, False))
        written = _written(name, operands)
        if self.is_refused and not is_refused and written is not None:
            self.slow.append((address, False))
        self.passed += 1
        if written is None or written in self.needed or self.passed > MAX_PASSED:
            self.passed = -1

    def entry(self) -> int:
        """The instruction that every call executes exactly once, at the least cost of a probe;
        :data:`NOWHERE` where the kernel refuses probes at all of them."""
        if self.grown == _BEHIND:
            return self.first  # each call passes what lies before once more after its stack has grown
        for place, is_push in self.emulated + self.padding + self.slow:
            # Indirect jumps, as of a switch, do not lead to a `push`: it would grow the stack each time.
            if (is_push or not self.has_indirect_jumps) and not self._is_reached(place):
                return place
        if self.is_refused:
            return NOWHERE
        return self.start if self.has_indirect_jumps or self._is_reached(self.first) else self.first

    def is_emulated(self, place: int) -> bool:
        """Whether the kernel emulates the instruction at a place in the straight line from the entry."""
        return any(place == one for one, _ in self.emulated + self.padding)

    def _is_reached(self, place: int) -> bool:
        """Whether a jump leads into the line from the entry to a place, so that a call may pass it again."""
        return any(self.start < target <= place for target in self.targets)


def read_code(path: str, probes: Sequence[Probe], tool: str) -> ProbeAddresses:
    """Disassemble the functions of probes in a file.

    :param tool: path of `objdump`.
    """
    functions = {
        probe.function.address: _Function(
            probe.function.address, probe.function.address + probe.function.size, _needed(probe.size)
        )
        for probe in probes
    }
    if not functions:
        return ProbeAddresses({}, {})
    with Binary(path) as binary:
        is_go = binary.is_go
    ordered = [functions[start] for start in sorted(functions)]
    cold = _read(_instructions(tool, path, ordered[0].start, ordered[-1].end), ordered)
    if cold:
        # Cold parts matter only because they may jump back to near the entry.
        parts = _instructions(tool, path, min(cold), max(cold) + _COLD_REACH)
        _read(parts, ordered, only_jumps=True)
    entries = {one.start: place for one in ordered if (place := one.entry()) != NOWHERE}
    emulated = {start for start, place in entries.items() if functions[start].is_emulated(place)}
    return ProbeAddresses(entries, {one.start: one.exits for one in ordered}, frozenset(emulated), is_go)


def _needed(size: Size | None) -> frozenset[str]:
    """What the probe reads, which must be at the probe as it is at the entry."""
    needed = {_STACK}
    if size is not None:
        if size.register >= 0:
            needed.add(_PARAMETERS[size.register])
        if size.register < 0 or any(term.offsets for term in size.terms):
            needed.add(_MEMORY)
    return frozenset(needed)


def _instructions(tool: str, path: str, start: int, end: int) -> Iterator[tuple[int, bytes, str, str]]:
    """Address, bytes, mnemonic and operands of the instructions from `start` to `end`."""
    span = (f"--start-address={start}", f"--stop-address={end}")
    command = [tool, "--disassemble", "-w", *span, path]
    with programs.Program(command, stdout=programs.PIPE, stderr=programs.DEVNULL) as process:
        assert process.stdout is not None
        for line in process.stdout:
            found = _LINE.match(line.decode("latin-1"))
            if found:
                yield int(found[1], 16), bytes.fromhex(found[2]), found[3], found[4].rstrip()


def _read(
    instructions: Iterable[tuple[int, bytes, str, str]],
    ordered: Sequence[_Function],
    only_jumps: bool = False,
) -> list[int]:
    """Add the instructions to their functions; return the addresses of cold parts.

    :param ordered: the functions by address. :param only_jumps: add nothing but the targets of jumps.
    """
    starts = [function.start for function in ordered]
    cold = []
    current: _Function | None = None
    for address, code, name, operands in instructions:
        if not current or not current.start <= address < current.end:
            place = bisect_right(starts, address) - 1
            current = ordered[place] if place >= 0 and address < ordered[place].end else None
        function = None if only_jumps else current
        if function and function.passed >= 0:
            function.extend(address, code, name, operands)
        if name.startswith(_BRANCHES):
            target = _TARGET.match(operands)
            if target:
                goal, label = int(target[1], 16), target[2] or ""
                reached = bisect_right(starts, goal) - 1
                if reached >= 0 and goal - starts[reached] < _REACH:
                    ordered[reached].targets.add(goal)
                if function and not function.start <= goal < function.end and not name.startswith("call"):
                    if ".cold" in label or "+0x" in label:
                        cold.append(goal)
                    if name.startswith("jmp") and ".cold" not in label:
                        function.exits.append(address)
            elif function and not name.startswith("call"):
                function.has_indirect_jumps = True
        elif function and name == "notrack":
            function.has_indirect_jumps = True
        elif function and name.startswith("ret"):
            function.exits.append(address)
    return cold


def _is_emulated(name: str, operands: str) -> bool:
    """Whether the kernel emulates a `nop`, a jump or a call; the caller knows `push`."""
    if (name, operands) in (("nop", ""), ("xchg", "%ax,%ax")):
        return True
    jumps = name.startswith(("j", "call")) and name not in ("jrcxz", "jecxz")
    return jumps and bool(_TARGET.match(operands))


def _written(name: str, operands: str) -> str | None:
    """What an instruction writes: a register, `memory`, or empty for nothing that matters; None where it may
    not continue with the next instruction, or may write something else.
    """
    if name in _EXTENDING and not operands:
        return _EXTENDING[name]
    if "%es:(" in operands or "%ds:(" in operands:
        return None
    if name.startswith("nop") or (name, operands) == ("xchg", "%ax,%ax") or _READING.fullmatch(name):
        return ""
    if not _WRITING.fullmatch(name):
        return None
    last = operands.partition(" ")[0].rpartition(",")[2]
    if name.startswith("imul") and "," not in operands:
        return None
    if last in _REGISTERS:
        return _REGISTERS[last]
    if re.match(r"%[xyz]mm\d", last):
        return ""
    return None if last.startswith("%") and ":" not in last else _MEMORY
