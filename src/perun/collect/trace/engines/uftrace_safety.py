"""Which functions uftrace 0.13 can record without changing what the program computes.

uftrace puts calls of its own code at the entry of a function and in place of its return address. That code
keeps the general registers, but not the vector registers, in which floating numbers are passed and returned
(System V ABI, AMD64 supplement 1.0, section 3.2.3). Two kinds of programs rely on more than that:

- With `-fipa-ra`, a part of `-O2`, GCC keeps values in vector registers across a call if it sees that the
  called function does not use them.
- Whatever unwinds the stack (exceptions, `pthread_exit`, cancellation) or exchanges it (`swapcontext`)
  meets return addresses that are not the program's.

So a function counts as safe only where its debug information and its callers prove it.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.collect.trace.plan import Probe
from perun.core.process import programs
from perun.native.binary import Binary, Function
from perun.native.dwarf import STRUCTS, defined, number_of, resolved, type_of
from perun.native.elf import DYNAMIC_SYMBOLS, SYMBOLS, Damaged, ElfFile, checked, text_at
from perun.native.parameters import formal_parameters

# Whether a function reads vector registers after a call, which the call may have changed.
#
# By the calling convention a call may change all of them (System V ABI, AMD64 supplement 1.0, section 3.2.1),
# so that code that reads one relies on more: that the called function leaves it alone, as GCC finds out with
# `-fipa-ra`. This follows which registers a call may have changed along all paths through the machine code.
# What is not known counts as changed, and as read: the parts of a function that no jump in it leads to, those
# behind jumps to computed addresses, and operands of instructions that are not known to be written only.

_REGISTER: Final = re.compile(rb"%(?:[xyz]mm(\d+)|k([0-7]))")
_DESTINATION: Final = re.compile(rb"%[xyz]mm(\d+)\s*$")
_VECTORS: Final = 32
ALL: Final = (1 << (_VECTORS + 8)) - 1
"""A bit for each vector register, and for each mask register behind them."""
_RESULTS: Final = 0b11
"""The registers in which results are: xmm0 and xmm1."""
_CLEARING: Final = re.compile(rb"v?(pxor[dq]?|xorp[sd]|pcmpeq[bwdq]|psub[bwdq])")
"""With one register as all operands these have the same result whatever was in it."""
_MOVING: Final = re.compile(rb"v?mov(aps|apd|ups|upd|dqa|dqu|d|q|ss|sd|ddup|s[lh]dup|nt\w*)(8|16|32|64)?")
_WRITING: Final = re.compile(
    rb"v(mov|add|sub|mul|div|max|min|sqrt|xor|and|or|cvt|unpck|shuf|cmp|round|broadcast|insert"
    rb"|extract|permil|perm2|p(xor|andn?|or|add|sub|mul[lhu]|min|max|broadcast|shuf|unpck|cmp|s[lr][la]|insr)).*"
)
"""Those of three operands that write the last one only."""


class Instruction(NamedTuple):
    """A machine instruction as objdump prints it."""

    address: int
    name: bytes
    operands: bytes


def keeps_over_calls(code: Sequence[Instruction], without_result: Container[int]) -> bool:
    """Whether a function may read a vector register as it was before a call.

    :param code: its instructions in the order of their addresses.
    :param without_result: addresses of functions that return nothing in vector registers.
    """
    places = {one.address: place for place, one in enumerate(code)}
    computed = any(one.name == b"jmp" and one.operands.startswith(b"*") for one in code)
    known: dict[int, int] = {}
    waiting = [(0, ALL if computed else 0)] if code else []
    if computed:
        waiting += [(places[at], ALL) for one in code if (at := target_of(one)) in places]
    rest = (place for place, one in enumerate(code) if not _is_padding(one))
    while True:
        if waiting:
            place, changed = waiting.pop()
        elif (next_place := next((place for place in rest if place not in known), -1)) >= 0:
            place, changed = next_place, ALL
        else:
            return False
        while place < len(code) and (place not in known or changed & ~known[place]):
            changed |= known.get(place, 0)
            known[place] = changed
            one = code[place]
            read, written = _used(one)
            if read & changed:
                return True
            changed &= ~written
            target = target_of(one)
            if one.name.startswith(b"call"):
                changed = ALL if target in without_result else ALL & ~_RESULTS
            elif one.name.startswith((b"j", b"loop")):
                if target in places:
                    waiting.append((places[target], changed))
                if one.name == b"jmp":
                    break
            elif one.name.startswith((b"ret", b"ud2", b"hlt")):
                break
            place += 1


def target_of(one: Instruction) -> int:
    """The address to which an instruction jumps or that it calls; -1 where it has none that is fixed."""
    if not one.name.startswith((b"j", b"call", b"loop")):
        return -1
    text = one.operands.strip()
    return int(text, 16) if re.fullmatch(rb"[0-9a-f]+", text) else -1


def _is_padding(one: Instruction) -> bool:
    """Whether an instruction does nothing, as those between blocks that are aligned."""
    return one.name.startswith(b"nop") or (one.name in (b"cs", b"data16") and b"nop" in one.operands)


def _used(one: Instruction) -> tuple[int, int]:
    """The registers that an instruction reads, and those that it writes."""
    registers = [_bit(found) for found in _REGISTER.finditer(one.operands)]
    if not registers:
        return 0, 0
    read = 0
    for register in registers:
        read |= register
    found = _DESTINATION.search(one.operands)
    if not found:
        return read, 0
    written = 1 << int(found[1])
    if b"{" in one.operands:  # with a mask the rest of the last operand stays as it is
        return read, written
    if len(registers) > 1 and len(set(registers)) == 1 and _CLEARING.fullmatch(one.name):
        return 0, written
    merges = one.name in (b"movss", b"movsd") and len(registers) > 1
    if (_MOVING.fullmatch(one.name) and not merges) or _WRITING.fullmatch(one.name):
        others = 0
        for register in registers[:-1]:
            others |= register
        return others, written
    return read, written


def _bit(found: re.Match[bytes]) -> int:
    return 1 << (int(found[1]) if found[1] else _VECTORS + int(found[2]))


OWN: Final = Path(__file__).parents[3]
"""The folder of Perun, whose programs are written for the engines to record them."""
UNWINDING: Final = (
    "pthread_exit",
    "pthread_cancel",
    "thrd_exit",
    "makecontext",
    "swapcontext",
    "setcontext",
    "_Unwind_RaiseException",
    "_Unwind_ForcedUnwind",
)
"""Functions of the C library that unwind or exchange the stack."""
NO_DEBUG_INFORMATION: Final = "the program has no debug information (-g) that shows them to be safe"
IN_VECTORS: Final = "they take or return floating numbers or vectors, which it may change"
VARIADIC: Final = "they take any number of parameters, floating numbers among them"
CHANGED: Final = "the compiler has changed their parameters"
KEPT: Final = "their callers may keep floating numbers or vectors in registers (-fipa-ra, a part of -O2)"
JUMPED_INTO: Final = "they jump to their first instructions, which it replaces"
_FLOATS: Final = (3, 4, 9, 15)
"""Encodings of DWARF for complex, real, imaginary and decimal floating point numbers."""
_MAX_DEPTH: Final = 8
_JUMP: Final = 5
"""Bytes that uftrace replaces at least."""
_LINE: Final = re.compile(rb"^ *([0-9a-f]+):\t(?:(?:repz|rep|bnd|notrack) )*(\S+)\s*([^<#]*)")
_ENDBR64: Final = b"endbr64"


class _Code(NamedTuple):
    """The machine code of a function.

    :ivar instructions: in the order of their addresses.
    :ivar targets: the addresses to which it jumps, or which it calls.
    :ivar comes_back: whether it jumps to an instruction that uftrace replaces.
    :ivar leaves: the addresses elsewhere to which it jumps, which may be parts of it.
    """

    instructions: list[Instruction]
    targets: frozenset[int]
    comes_back: bool
    leaves: frozenset[int]


def unwinds(path: str) -> str:
    """The first of :data:`UNWINDING` that a program or library uses; empty where it uses none."""
    found = used_by(path)
    return next((one for one in UNWINDING if one in found), "")


def used_by(path: str) -> set[str]:
    """The symbols that a program or library uses, and others define; none where the file is damaged."""
    found: set[str] = set()
    with suppress(OSError, Damaged), open(path, "rb") as file:
        elf = ElfFile(file)
        for kind in (DYNAMIC_SYMBOLS, SYMBOLS):
            symbols, names = elf.symbols(kind) or ([], b"")
            found |= {
                text_at(names, int(one["name"])).decode("utf-8", "replace").partition("@")[0]
                for one in symbols
                if not one["section"]
            }
    return found


def unsafe_functions(probes: Sequence[Probe], tool: str, cache: Path | None = None) -> dict[int, str]:
    """The positions of the probes that uftrace must leave out, each with the reason.

    :param tool: path of `objdump`; empty where it is not installed. :param cache: see :class:`Binary`.
    """
    unsafe: dict[int, str] = {}
    by_path: dict[str, list[int]] = {}
    for number, probe in enumerate(probes):
        by_path.setdefault(probe.path, []).append(number)
    for path, numbers in by_path.items():
        if Path(path).is_relative_to(OWN):
            continue
        with Binary(path, cache) as binary:
            units: dict[int, int] = {}
            for number in numbers:
                function = probes[number].function
                reason, unit = binary.described(
                    function, partial(_reason, function), (NO_DEBUG_INFORMATION, -1)
                )
                if reason:
                    unsafe[number] = reason
                else:
                    units[function.address] = unit
            suspects = _in_doubtful_code(binary, units, tool)
            for number in numbers:
                if reason := suspects.get(probes[number].function.address, ""):
                    unsafe.setdefault(number, reason)
    return unsafe


def _reason(function: Function, entry: Any) -> tuple[str, int]:
    """Why the parameters or the result of a function make it unsafe, empty where they do not; and the
    offset of its unit in the debug information."""
    reason = ""
    if function.clone:
        reason = CHANGED
    elif _has_vectors(type_of(entry)):
        reason = IN_VECTORS
    for one in _descriptions(entry) if not reason else ():
        if any(child.tag == "DW_TAG_unspecified_parameters" for child in one.iter_children()):
            reason = VARIADIC
        elif any(_has_vectors(type_of(parameter)) for parameter in formal_parameters(one)):
            reason = IN_VECTORS
        if reason:
            break
    return reason, entry.cu.cu_offset


def _descriptions(entry: Any) -> Iterator[Any]:
    """The entry of a function, and those of the same function that it refers to."""
    yield entry
    for link in ("DW_AT_abstract_origin", "DW_AT_specification"):
        if link in entry.attributes:
            yield from _descriptions(entry.get_DIE_from_attribute(link))


def _has_vectors(kind: Any, depth: int = 0) -> bool:
    """Whether values of a type have a floating number or a vector in them."""
    kind = resolved(kind)
    if kind is None:
        return False
    if kind.tag == "DW_TAG_base_type":
        return number_of(kind, "DW_AT_encoding") in _FLOATS
    if kind.tag == "DW_TAG_array_type":
        return "DW_AT_GNU_vector" in kind.attributes or _has_vectors(type_of(kind), depth + 1)
    if kind.tag in STRUCTS:
        if depth > _MAX_DEPTH:
            return True
        parts = [child for child in defined(kind).iter_children()
                 if child.tag in ("DW_TAG_member", "DW_TAG_inheritance")
                 and "DW_AT_external" not in child.attributes]  # fmt: skip
        return any(_has_vectors(type_of(part), depth + 1) for part in parts)
    return False


def _in_doubtful_code(binary: Binary, units: Mapping[int, int], tool: str) -> dict[int, str]:
    """The functions, by address, that their machine code or that of their callers makes unsafe.

    :param units: of each function in question the offset of its unit in the debug information.
    """
    if not units:
        return {}
    if not tool:
        return {address: KEPT for address in units if _keeps(binary, units[address])}
    code = _code_of(binary, tool)
    doubtful = {address: JUMPED_INTO for address in units if address in code and code[address].comes_back}
    keeping = {unit for unit in set(units.values()) if _keeps(binary, unit)}
    if not keeping:
        return doubtful
    whole = any(_is_linked_as_one(binary, unit) for unit in keeping)
    of_unit: dict[int, set[int]] = {}
    without_result: set[int] = set()
    for function in binary.functions:
        unit, returns_vectors = binary.described(
            function, lambda entry: (entry.cu.cu_offset, _has_vectors(type_of(entry))), (-1, True)
        )
        if unit >= 0:
            of_unit.setdefault(0 if whole else unit, set()).add(function.address)
            if not returns_vectors:
                without_result.add(function.address)
    for unit in {0} if whole else keeping:
        for address in _called_by_keepers(code, of_unit.get(unit, set()), without_result):
            doubtful.setdefault(address, KEPT)
    return doubtful


def _called_by_keepers(code: Mapping[int, _Code], unit: set[int], without_result: set[int]) -> set[int]:
    """The functions of a unit that others of it call, directly or not, and rely on for vector registers."""
    reached: set[int] = set()
    waiting = [one for one in unit if one in code and _keeps_over_calls(code, one, without_result)]
    while waiting:
        one = code.get(waiting.pop())
        for target in (one.targets & unit) - reached if one else ():
            reached.add(target)
            waiting.append(target)
    return reached


def _keeps_over_calls(code: Mapping[int, _Code], address: int, without_result: set[int]) -> bool:
    """Whether a function may rely on functions that it calls to leave vector registers alone."""
    one = code[address]
    if one.leaves - code.keys():
        # A cold part of it lies elsewhere, where its registers are not followed to.
        return True
    return keeps_over_calls(one.instructions, without_result)


def _producer(binary: Binary, unit: int) -> str:
    with suppress(Damaged), checked():
        entry = binary.debug.get_CU_at(unit).get_top_DIE()
        attribute = entry.attributes.get("DW_AT_producer")
        return str(attribute.value.decode("utf-8", "replace")) if attribute is not None else "GNU"
    return "GNU"


def _keeps(binary: Binary, unit: int) -> bool:
    """Whether the compiler of a unit may keep values in registers that a called function does not use."""
    producer = _producer(binary, unit)
    if "GNU" not in producer:
        return "clang" not in producer  # clang does this only if it is asked to by an internal option
    options = producer.split()
    if "-mtune" not in producer and "-march" not in producer:
        return True  # the options are not recorded
    told = [one for one in options if one in ("-fipa-ra", "-fno-ipa-ra")]
    if told:
        return told[-1] == "-fipa-ra"
    levels = [one for one in options if re.fullmatch(r"-O\w*", one)]
    return bool(levels) and levels[-1] not in ("-O", "-O0", "-O1", "-Og")


def _is_linked_as_one(binary: Binary, unit: int) -> bool:
    """Whether a unit was compiled together with others, when the program was linked (LTO)."""
    options = _producer(binary, unit).split()
    return any(one.startswith(("-flto", "-fltrans", "-fwhole-program")) for one in options)


def _code_of(binary: Binary, tool: str) -> dict[int, _Code]:
    """The machine code of the functions of a file, by their addresses."""
    functions = binary.functions
    starts = [function.address for function in functions]
    gathered: dict[int, list[Instruction]] = {}
    for one in _instructions(tool, binary.path):
        place = bisect_right(starts, one.address) - 1
        if place >= 0:
            gathered.setdefault(starts[place], []).append(one)
    return {start: _summed_up(lines) for start, lines in gathered.items()}


def _summed_up(lines: list[Instruction]) -> _Code:
    targets: set[int] = set()
    jumps: set[int] = set()
    replaced: set[int] = set()
    begin = -1
    for one in lines:
        if begin < 0 and one.name != _ENDBR64:
            begin = one.address
        if begin >= 0 and one.address < begin + _JUMP:
            replaced.add(one.address)
        target = target_of(one)
        if target >= 0:
            targets.add(target)
            if not one.name.startswith(b"call"):
                jumps.add(target)
    inside = {one.address for one in lines}
    return _Code(lines, frozenset(targets), bool(jumps & replaced), frozenset(jumps - inside))


def _instructions(tool: str, path: str) -> Iterator[Instruction]:
    """All instructions of a file."""
    command = [tool, "--disassemble", "--no-show-raw-insn", "-w", path]
    environ = {**os.environ, "LC_ALL": "C"}
    with programs.Program(command, stdout=programs.PIPE, stderr=programs.DEVNULL, environ=environ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if found := _LINE.match(line):
                # A jump into a library is like a return: nothing of this function comes after it.
                operands = b"library" if b"@plt>" in line else found[3]
                yield Instruction(int(found[1], 16), found[2], operands)
