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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.collect._calls.binary import Binary, Function
from perun.collect._calls.dwarf import STRUCTS, defined, number_of, resolved, type_of
from perun.collect._calls.parameters import formal_parameters
from perun.collect.trace.engines.vector_registers import Instruction, keeps_over_calls, target_of
from perun.collect.trace.plan import Probe
from perun.elf import DYNAMIC_SYMBOLS, SYMBOLS, Damaged, ElfFile, checked, text_at
from perun.process import programs

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
    return next((one for one in UNWINDING if one in found), "")


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
    with programs.Program(
        command, stdout=programs.PIPE, stderr=programs.DEVNULL, environ=environ
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if found := _LINE.match(line):
                # A jump into a library is like a return: nothing of this function comes after it.
                operands = b"library" if b"@plt>" in line else found[3]
                yield Instruction(int(found[1], 16), found[2], operands)
