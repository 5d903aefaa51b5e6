"""What instructions tell the engine `ebpf`: where to probe the entry of a function, and where it is left.

A probe costs what the instruction costs that it stands at. The kernel emulates `push` of a register, `nop`,
jumps and calls to a fixed place; anything else it has the processor execute alone, which takes ten times as
long and more. So the probe of an entry moves to the first instruction that is emulated, where nothing that is
wanted is lost on the way there, and where every call passes once.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from perun.collect._calls.sizes import Size
    from perun.collect.trace.plan import Probe

MAX_PASSED: Final = 16
"""Instructions that a probe moves over: their time is no longer that of the call."""
_LONGEST_INSTRUCTION: Final = 15
_REACH: Final = (MAX_PASSED + 1) * _LONGEST_INSTRUCTION
_COLD_REACH: Final = 1 << 16
"""Bytes that are read of the last part of a function that the compiler has put elsewhere."""
_LINE: Final = re.compile(r"^ *([0-9a-f]+):\s+(?:(?:repz|rep|bnd) )?(\w+)\s*(.*)$")
_TARGET: Final = re.compile(r"([0-9a-f]+)(?: <(.*)>)?$")
_GOING: Final = ("j", "call", "loop", "xbegin")
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
"""Instructions that write nothing but their last operand. Those that compare and exchange, that repeat, that
write more registers than they name, and that take long are not among them."""
_PREFIXES: Final = ("lock", "cs", "ds", "es", "ss", "notrack", "xacquire", "xrelease")
"""The kernel puts no probe at an instruction with one of these."""
_EXTENDING: Final = {"cltq": "rax", "cwtl": "rax", "cbtw": "rax", "cltd": "rdx", "cqto": "rdx", "cwtd": "rdx"}


class Code(NamedTuple):
    """What the instructions of functions tell, by the addresses of the functions.

    :ivar entries: where to probe the entry; not of functions that the kernel cannot put a probe at.
    :ivar leaving: returns, and jumps into other functions.
    """

    entries: dict[int, int]
    leaving: dict[int, list[int]]


class _Function:
    """What is known of a function while its instructions are read.

    :ivar cheap: the instructions that are emulated and that a call passes, and whether each is a `push`.
    :ivar padding: those among them that only new kernels emulate: `nop` of several bytes.
    :ivar passed: how many instructions there are before; -1 where the last one ends the straight line.
    :ivar targets: where jumps lead to at its beginning.
    :ivar wanders: whether it has jumps to who knows where.
    :ivar is_refused: whether the kernel puts no probe at its beginning.
    """

    def __init__(self, start: int, end: int, kept: frozenset[str]) -> None:
        self.start = start
        self.end = end
        self.first = start
        self.kept = kept
        self.cheap: list[tuple[int, bool]] = []
        self.padding: list[tuple[int, bool]] = []
        self.passed = 0
        self.targets: set[int] = set()
        self.wanders = self.is_refused = False
        self.leaving: list[int] = []

    def pass_over(self, address: int, name: str, operands: str) -> None:
        """Go on along the straight line from the entry."""
        if name.startswith("endbr") and address == self.start:
            self.first = address + 4
            return
        if name in _PREFIXES and address == self.first:
            self.is_refused = self.first == self.start
            self.first = self.start
        is_push = name == "push" and operands in _REGISTERS
        if is_push or _is_emulated(name, operands):
            self.cheap.append((address, is_push))
        elif name.startswith("nop"):
            self.padding.append((address, False))
        written = _written(name, operands)
        self.passed += 1
        if written is None or written in self.kept or self.passed > MAX_PASSED:
            self.passed = -1

    def entry(self) -> int:
        """Where every call passes once, at the least cost."""
        for place, is_push in self.cheap + self.padding:
            # What comes from who knows where does not come to a `push`: the stack would grow.
            if (is_push or not self.wanders) and not self._is_reached(place):
                return place
        return self.start if self.wanders or self._is_reached(self.first) else self.first

    def _is_reached(self, place: int) -> bool:
        """Whether a jump leads onto the way from the entry to a place."""
        return any(self.start < target <= place for target in self.targets)


def read_code(path: str, probes: Sequence[Probe], tool: str) -> Code:
    """Disassemble the functions of probes in a file with `objdump`."""
    functions = {
        probe.function.address: _Function(
            probe.function.address, probe.function.address + probe.function.size, _needed(probe.size)
        )
        for probe in probes
    }
    if not functions:
        return Code({}, {})
    ordered = [functions[start] for start in sorted(functions)]
    elsewhere = _read(_instructions(tool, path, ordered[0].start, ordered[-1].end), ordered)
    if elsewhere:
        # Of the parts that lie elsewhere only matters where they jump back to.
        parts = _instructions(tool, path, min(elsewhere), max(elsewhere) + _COLD_REACH)
        _read(parts, ordered, only_jumps=True)
    entries = {one.start: one.entry() for one in ordered if not one.is_refused}
    return Code(entries, {one.start: one.leaving for one in ordered})


def _needed(size: Size | None) -> frozenset[str]:
    """What must be at the probe as it is at the entry."""
    needed = {_STACK}
    if size is not None:
        if size.register >= 0:
            needed.add(_PARAMETERS[size.register])
        if size.register < 0 or any(term.offsets for term in size.terms):
            needed.add(_MEMORY)
    return frozenset(needed)


def _instructions(tool: str, path: str, start: int, end: int) -> Iterator[tuple[int, str, str]]:
    """Address, name and operands."""
    import subprocess

    span = (f"--start-address={start}", f"--stop-address={end}")
    command = [tool, "--disassemble", "--no-show-raw-insn", "-w", *span, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        for line in process.stdout:
            found = _LINE.match(line.decode("latin-1"))
            if found:
                yield int(found[1], 16), found[2], found[3].rstrip()


def _read(
    instructions: Iterable[tuple[int, str, str]], ordered: Sequence[_Function], only_jumps: bool = False
) -> list[int]:
    """Note what the instructions tell of the functions; where parts of them lie elsewhere is returned."""
    starts = [function.start for function in ordered]
    elsewhere = []
    current: _Function | None = None
    for address, name, operands in instructions:
        if not current or not current.start <= address < current.end:
            place = bisect_right(starts, address) - 1
            current = ordered[place] if place >= 0 and address < ordered[place].end else None
        function = None if only_jumps else current
        if function and function.passed >= 0:
            function.pass_over(address, name, operands)
        if name.startswith(_GOING):
            target = _TARGET.match(operands)
            if target:
                goal, label = int(target[1], 16), target[2] or ""
                reached = bisect_right(starts, goal) - 1
                if reached >= 0 and goal - starts[reached] < _REACH:
                    ordered[reached].targets.add(goal)
                if function and not function.start <= goal < function.end and not name.startswith("call"):
                    if ".cold" in label or "+0x" in label:
                        elsewhere.append(goal)
                    if name.startswith("jmp") and ".cold" not in label:
                        function.leaving.append(address)
            elif function and not name.startswith("call"):
                function.wanders = True
        elif function and name == "notrack":
            function.wanders = True
        elif function and name.startswith("ret"):
            function.leaving.append(address)
    return elsewhere


def _is_emulated(name: str, operands: str) -> bool:
    if (name, operands) in (("nop", ""), ("xchg", "%ax,%ax")):
        return True
    jumps = name.startswith(("j", "call")) and name not in ("jrcxz", "jecxz")
    return jumps and bool(_TARGET.match(operands))


def _written(name: str, operands: str) -> str | None:
    """What an instruction writes: a register, `memory`, or nothing that matters (empty); None where it does
    not go on to the next one, or does more than that.
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
