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
import subprocess
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.collect._calls.binary import Binary, Function
from perun.collect._calls.dwarf import STRUCTS, defined, number_of, resolved, type_of
from perun.collect._calls.parameters import formal_parameters
from perun.collect.trace.plan import Probe

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
_VECTORS: Final = re.compile(rb"%[xyz]mm\d|%k[0-7]\b")
_ENDBR64: Final = b"endbr64"


class _Code(NamedTuple):
    """What the machine code of a function does.

    :ivar vectors: whether it uses vector registers. :ivar calls: whether it calls anything.
    :ivar targets: the addresses to which it jumps or calls.
    :ivar comes_back: whether it jumps to an instruction that uftrace replaces.
    """

    vectors: bool
    calls: bool
    targets: frozenset[int]
    comes_back: bool


def unwinds(path: str) -> str:
    """The first of :data:`UNWINDING` that a program or library uses; empty where it uses none."""
    from elftools.elf.elffile import ELFFile

    with open(path, "rb") as file:
        elf: Any = ELFFile(file)
        for name in (".dynsym", ".symtab"):
            table = elf.get_section_by_name(name)
            if table is not None:
                names = {
                    symbol.name.partition("@")[0]
                    for symbol in table.iter_symbols()
                    if symbol["st_shndx"] == "SHN_UNDEF"
                }
                for one in UNWINDING:
                    if one in names:
                        return one
    return ""


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
                entry = binary.description(function)
                if reason := _reason(function, entry):
                    unsafe[number] = reason
                else:
                    units[function.address] = entry.cu.cu_offset
            suspects = _in_doubtful_code(binary, units, tool)
            for number in numbers:
                if reason := suspects.get(probes[number].function.address, ""):
                    unsafe.setdefault(number, reason)
    return unsafe


def _reason(function: Function, entry: Any) -> str:
    """Why the parameters or the result of a function make it unsafe; empty where they do not."""
    if entry is None:
        return NO_DEBUG_INFORMATION
    if function.clone:
        return CHANGED
    if _has_vectors(type_of(entry)):
        return IN_VECTORS
    for one in _descriptions(entry):
        if any(child.tag == "DW_TAG_unspecified_parameters" for child in one.iter_children()):
            return VARIADIC
        if any(_has_vectors(type_of(parameter)) for parameter in formal_parameters(one)):
            return IN_VECTORS
    return ""


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
    doubtful = {
        address: JUMPED_INTO for address in units if address in code and code[address].comes_back
    }
    keeping = {unit for unit in set(units.values()) if _keeps(binary, unit)}
    if not keeping:
        return doubtful
    whole = any(_is_linked_as_one(binary, unit) for unit in keeping)
    of_unit: dict[int, set[int]] = {}
    for function in binary.functions:
        entry = binary.description(function)
        if entry is not None:
            of_unit.setdefault(0 if whole else entry.cu.cu_offset, set()).add(function.address)
    for unit in {0} if whole else keeping:
        for address in _reached_with_vectors(code, of_unit.get(unit, set())):
            doubtful.setdefault(address, KEPT)
    return doubtful


def _reached_with_vectors(code: Mapping[int, _Code], unit: set[int]) -> set[int]:
    """The functions of a unit that are called by one of its functions that uses vectors and calls others."""
    reached: set[int] = set()
    waiting = [address for address in unit if (one := code.get(address)) and one.vectors and one.calls]
    while waiting:
        one = code.get(waiting.pop())
        for target in (one.targets & unit) - reached if one else ():
            reached.add(target)
            waiting.append(target)
    return reached


def _producer(binary: Binary, unit: int) -> str:
    entry = binary.debug.get_CU_at(unit).get_top_DIE()
    attribute = entry.attributes.get("DW_AT_producer")
    return str(attribute.value.decode("utf-8", "replace")) if attribute is not None else "GNU"


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
    found: dict[int, _Code] = {}
    gathered: dict[int, list[tuple[int, bytes, bytes]]] = {}
    for address, name, operands in _instructions(tool, binary.path):
        place = bisect_right(starts, address) - 1
        if place >= 0:
            gathered.setdefault(starts[place], []).append((address, name, operands))
    for start, lines in gathered.items():
        found[start] = _summed_up(lines)
    return found


def _summed_up(lines: Iterable[tuple[int, bytes, bytes]]) -> _Code:
    vectors = calls = False
    targets: set[int] = set()
    jumps: set[int] = set()
    replaced: set[int] = set()
    begin = -1
    for address, name, operands in lines:
        if begin < 0 and name != _ENDBR64:
            begin = address
        if begin >= 0 and address < begin + _JUMP:
            replaced.add(address)
        vectors = vectors or _VECTORS.search(operands) is not None
        calls = calls or name.startswith(b"call")
        if name.startswith((b"j", b"call", b"loop")) and re.fullmatch(rb"[0-9a-f]+\s*", operands):
            targets.add(int(operands, 16))
            if not name.startswith(b"call"):
                jumps.add(int(operands, 16))
    return _Code(vectors, calls, frozenset(targets), bool(jumps & replaced))


def _instructions(tool: str, path: str) -> Iterator[tuple[int, bytes, bytes]]:
    """Address, mnemonic and operands of all instructions of a file."""
    command = [tool, "--disassemble", "--no-show-raw-insn", "-w", path]
    environ = {**os.environ, "LC_ALL": "C"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if found := _LINE.match(line):
                yield int(found[1], 16), found[2], found[3]
