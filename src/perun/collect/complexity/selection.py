"""Selects the functions to record and how to read their sizes, and names them in the profile."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.collect._calls.optimizations.applying import OptimizationResult, TraceCandidate, apply, is_wanted
from perun.collect._calls.profile import CalledFunction
from perun.collect._calls.sizes import find_size, size_of
from perun.collect._common.recordings import BYTE_ORDER
from perun.core.errors import JobFailed, UsageError
from perun.native.binary import Binary
from perun.native.dwarf import MAX_DEPTH
from perun.native.function_names import plain_name, without_arguments

if TYPE_CHECKING:
    from perun.collect._calls.sizes import Size
    from perun.collect.complexity.build import ComplexityParams
    from perun.collect.complexity.records import FunctionAddress
    from perun.native.binary import Function
    from perun.native.binary import Function as Symbol
    from perun.plugin.api import CollectContext, Run


# How the runtime reads the size of a structure at the entry of a function.
#
# The compiler calls the hook at the beginning of a function, when the parameters are already where they stay
# until its end: in registers that calls preserve, or in its frame. The debug information has these places for
# the function itself and wherever it is inlined.

# The table for the runtime: functions to record and how to read sizes. `native/record.h` owns its format.

MAGIC: Final = b"PERUNCXT"
VERSION: Final = 2
FRAME: Final = 255
"""In place of the number of a register: the address of the frame of the function."""
INLINED: Final = 256
"""Added to the place of a program that is for where the function is inlined."""

HEADER: Final = struct.Struct("=8sIIIIIIII")
MODULE: Final = struct.Struct("=IIIIII")
FUNCTION: Final = struct.Struct("=QQII")
PROGRAM: Final = struct.Struct("=QQQqIIII")
STEP: Final = struct.Struct("=Qq")


class Operand(IntEnum):
    """What a program begins with: a register, the memory at register and offset, or that address."""

    REGISTER = 0
    MEMORY = 1
    ADDRESS = 2


class Operation(IntEnum):
    """What a step does on the stack of values; see `enum table_operation`."""

    ADD = 0
    LOAD = 1
    LOAD_INT = 2
    COPY = 3
    SWAP = 4
    SUM = 5
    DIVIDE = 6
    MULTIPLY = 7
    MASK = 8
    EXTEND = 9


class SizeStep(NamedTuple):
    """One step of a program."""

    operation: Operation
    number: int = 0


class SizeProgram(NamedTuple):
    """How to read a size where the hook returns to an address in [`low`, `high`).

    :param function: address of the entered function, which may be inlined in another one.
    :param base: number of a register in DWARF, or :data:`FRAME`. :param offset: bytes added to it.
    :param is_inlined: whether the program is for places where the function is inlined.
    """

    function: int
    low: int
    high: int
    place: Operand
    base: int
    offset: int
    steps: tuple[SizeStep, ...]
    is_inlined: bool = False


class TableFunction(NamedTuple):
    """A function: its address and bytes, whether its calls are recorded, and one in how many of them."""

    address: int
    size: int
    is_recorded: bool = True
    sampling: int = 1


class FileSelection(NamedTuple):
    """The functions and programs of one file; :param path: its real path."""

    path: str
    functions: Sequence[TableFunction] = ()
    programs: Sequence[SizeProgram] = ()


def encoded(modules: Sequence[FileSelection], *, only_listed: bool) -> bytes:
    """The bytes of the table.

    :param only_listed: record only functions of the table; otherwise all that it does not exclude.
    """
    texts = b""
    functions: list[bytes] = []
    programs: list[bytes] = []
    steps: list[bytes] = []
    heads: list[bytes] = []
    for module in modules:
        path = module.path.encode("utf-8", "surrogateescape")
        head = (len(texts), len(path), len(module.functions), len(functions))
        heads.append(MODULE.pack(*head, len(module.programs), len(programs)))
        texts += path
        functions += [FUNCTION.pack(*one) for one in sorted(module.functions)]
        for program in module.programs:
            where = (program.function, program.low, program.high, program.offset)
            how = (
                program.place + (INLINED if program.is_inlined else 0),
                program.base,
                len(program.steps),
                len(steps),
            )
            programs.append(PROGRAM.pack(*where, *how))
            steps += [STEP.pack(*step) for step in program.steps]
    counts = (len(modules), len(functions), len(programs), len(steps))
    header = HEADER.pack(MAGIC, BYTE_ORDER, VERSION, *counts, only_listed, len(texts))
    return b"".join([header, *heads, *functions, *programs, *steps, texts])


_PRESERVED: Final = (3, 6, 12, 13, 14, 15)
"""Registers of x86-64 that a call preserves, as DWARF numbers them: rbx, rbp, r12 to r15."""
_FRAME_POINTER: Final = 6
_REG0, _REG31, _BREG0, _BREG31, _FBREG, _CALL_FRAME_CFA, _STACK_VALUE = (
    0x50,
    0x6F,
    0x70,
    0x8F,
    0x91,
    0x9C,
    0x9F,
)
_SCOPES: Final = (
    "DW_TAG_lexical_block",
    "DW_TAG_inlined_subroutine",
    "DW_TAG_try_block",
    "DW_TAG_catch_block",
)
_WIDTH: Final = 8
_Identity = tuple[int, int]


class _Location(NamedTuple):
    low: int
    high: int
    expression: tuple[int, ...]


def programs(binary: Binary, sizes: Mapping[Function, Size]) -> list[SizeProgram]:
    """The programs for all places where the functions of these sizes were compiled.

    A place has none if the hook cannot read the parameter there.
    """
    if binary.debug is None or not binary.is_x86_64:
        return []
    wanted: dict[_Identity, tuple[Function, Size, int]] = {}
    for function, size in sizes.items():
        identity, index = binary.described(function, partial(_identity_and_index, size), ((0, 0), -1))
        if index >= 0:
            wanted[identity] = (function, size, index)
    found: list[SizeProgram] = []
    for function in binary.functions if wanted else ():
        found += binary.described(function, partial(_of_function, wanted), [])
    return found


def _of_function(wanted: Mapping[_Identity, tuple[Function, Size, int]], entry: Any) -> list[SizeProgram]:
    return list(_within(_Reader(entry), entry, wanted))


def _identity_and_index(size: Size, entry: Any) -> tuple[_Identity, int]:
    return _identity(entry), _index(entry, size)


def _within(
    reader: _Reader,
    entry: Any,
    wanted: Mapping[_Identity, tuple[Function, Size, int]],
    around: tuple[_Identity, ...] = (),
) -> Iterator[SizeProgram]:
    """The programs of an entry and of the functions that are inlined in it.

    :param around: the functions around the entry. A function that is inlined in itself has no programs there,
        because the hook cannot tell to which of the two a place belongs.
    """
    if entry.tag != "DW_TAG_lexical_block":
        origin = _identity(entry)
        known = wanted.get(origin)
        if known is not None and origin not in around[1:]:
            yield from _of_instance(reader, entry, *known)
        around = (*around, origin)
    for child in entry.iter_children():
        if child.tag in _SCOPES:
            yield from _within(reader, child, wanted, around)


def _of_instance(
    reader: _Reader, entry: Any, function: Function, size: Size, index: int
) -> Iterator[SizeProgram]:
    parameters = [one for one in entry.iter_children() if one.tag == "DW_TAG_formal_parameter"]
    for location in reader.locations(parameters[index]) if index < len(parameters) else ():
        found = reader.place(location.expression)
        if found is not None:
            is_inlined = entry.tag == "DW_TAG_inlined_subroutine"
            yield SizeProgram(
                function.address, location.low, location.high, *found, tuple(steps_of(size)), is_inlined
            )


def _index(entry: Any, size: Size) -> int:
    """The index of the parameter with which the size begins; -1 if there is none that the hook can read."""
    from perun.native.parameters import parameters_of

    if size.register < 0:
        return -1  # parameters on the stack are too rare to be supported
    for index, parameter in enumerate(parameters_of(entry)):
        if parameter.place == (size.register, size.stack):
            # The debug information of an inlined function describes the object, not the hidden pointer to it.
            return -1 if parameter.indirect else index
    return -1


def steps_of(size: Size) -> Iterator[SizeStep]:
    """The steps from the value of the parameter to the size."""
    # Each term but the last works on a copy of the parameter and then swaps it to the top for the next one,
    # so that in the end all terms are on the stack and are summed up.
    for number, term in enumerate(size.terms):
        if number + 1 < len(size.terms):
            yield SizeStep(Operation.COPY)
        for position, offset in enumerate(term.offsets):
            last = position + 1 == len(term.offsets)
            yield SizeStep(Operation.ADD, offset)
            yield SizeStep(
                Operation.LOAD_INT if last and term.signed else Operation.LOAD, term.width if last else _WIDTH
            )
        if not term.offsets and term.width < _WIDTH:
            signed = (
                SizeStep(Operation.EXTEND, term.width),
                SizeStep(Operation.MASK, (1 << 8 * term.width) - 1),
            )
            yield signed[0] if term.signed else signed[1]
        if term.factor != 1:
            yield SizeStep(Operation.MULTIPLY, term.factor)
        if number + 1 < len(size.terms):
            yield SizeStep(Operation.SWAP)
    for _ in size.terms[1:]:
        yield SizeStep(Operation.SUM)
    if size.constant:
        yield SizeStep(Operation.ADD, size.constant)
    if size.divisor != 1:
        yield SizeStep(Operation.DIVIDE, size.divisor)


def _identity(entry: Any) -> _Identity:
    """The abstract entry of a function, which all its concrete ones share: its file and its offset there."""
    for _ in range(MAX_DEPTH):
        if "DW_AT_abstract_origin" not in entry.attributes:
            break
        entry = entry.get_DIE_from_attribute("DW_AT_abstract_origin")
    return id(entry.dwarfinfo), entry.offset


class _Reader:
    """Reads the locations of parameters in one function."""

    def __init__(self, entry: Any) -> None:
        from elftools.dwarf.locationlists import LocationParser

        self._parser = LocationParser(entry.dwarfinfo.location_lists())
        self._version = entry.cu["version"]
        top = entry.cu.get_top_DIE()
        self._start = top.attributes["DW_AT_low_pc"].value if "DW_AT_low_pc" in top.attributes else 0
        producer = top.attributes.get("DW_AT_producer")
        # In unoptimised functions clang calls the hook before it stores the parameters.
        # In a file of its own (`.dwo`) it may be the number of a text that is not read.
        text = producer.value if producer is not None and isinstance(producer.value, bytes) else b""
        self._stores_late = b"clang" in text
        frame = entry.attributes.get("DW_AT_frame_base")
        self._frame_base = tuple(frame.value) if frame is not None and isinstance(frame.value, list) else ()

    def locations(self, parameter: Any) -> Iterator[_Location]:
        """The locations of a parameter, each with its range of addresses."""
        from elftools.dwarf.locationlists import BaseAddressEntry, LocationEntry, LocationExpr

        attribute = parameter.attributes.get("DW_AT_location")
        if attribute is None or not self._parser.attribute_has_location(attribute, self._version):
            return
        found = self._parser.parse_from_attribute(attribute, self._version, parameter)
        if isinstance(found, LocationExpr):
            if not self._stores_late:
                yield _Location(0, (1 << 64) - 1, tuple(found.loc_expr))
            return
        base = self._start
        for one in found:
            if isinstance(one, BaseAddressEntry):
                base = one.base_address
            elif isinstance(one, LocationEntry):
                start = 0 if one.is_absolute else base
                yield _Location(start + one.begin_offset, start + one.end_offset, tuple(one.loc_expr))

    def place(self, expression: tuple[int, ...]) -> tuple[Operand, int, int] | None:
        """Place, base and offset of a location; None if the hook cannot read it."""
        if not expression:
            return None
        code, rest = expression[0], expression[1:]
        if _REG0 <= code <= _REG31:
            return (Operand.REGISTER, code - _REG0, 0) if code - _REG0 in _PRESERVED and not rest else None
        if code == _FBREG:
            base = self._base()
        elif _BREG0 <= code <= _BREG31 and code - _BREG0 in _PRESERVED:
            base = code - _BREG0
        else:
            return None
        offset, rest = _signed(rest)
        if base is None or rest not in ((), (_STACK_VALUE,)):
            return None
        return Operand.ADDRESS if rest else Operand.MEMORY, base, offset

    def _base(self) -> int | None:
        if self._frame_base == (_CALL_FRAME_CFA,):
            return FRAME
        return _FRAME_POINTER if self._frame_base == (_REG0 + _FRAME_POINTER,) else None


def _signed(data: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """The number that the data begin with, in signed LEB128, and the rest."""
    number = shift = 0
    for position, byte in enumerate(data):
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number - (1 << shift) if byte & 0x40 else number), data[position + 1 :]
    return 0, (0,)


class Selection(NamedTuple):
    """What the runtime records.

    :param table: the table for it. :param path: real path of the program; empty if it is a script.
    :param sizes: address of a function to the expression of its size. :param notes: for the user.
    :param applied: what the optimisations decided; None where there are none.
    """

    table: bytes
    path: str
    sizes: dict[int, str]
    notes: list[str]
    applied: OptimizationResult | None = None

    def functions(
        self, places: Sequence[FunctionAddress], cwd: Path, ctx: CollectContext
    ) -> list[CalledFunction]:
        """The functions at the places, by their numbers."""
        names: dict[str, dict[int, str]] = {}
        for path in {place.path for place in places}:
            names[path] = {}
            if os.path.isfile(path):
                with Binary(path, ctx.cache) as binary:
                    names[path] = {function.address: function.name for function in binary.functions}
        return [
            CalledFunction(
                names[place.path].get(place.address, f"{place.address:#x}"),
                _location(place.path, cwd, ctx.scratch),
                self.sizes.get(place.address, "") if place.path == self.path else "",
            )
            for place in places
        ]


def select(program: str, params: ComplexityParams, ctx: CollectContext, run: Run | None = None) -> Selection:
    """Select the functions of a program.

    :param run: what is measured; without one the optimisations choose nothing.
    :raises NoProfile: where the parameters ask for explanations alone.
    :raises UsageError: where none of the functions of the rules exists; names the most similar ones.
    :raises JobFailed: where the program cannot be read.
    """
    if not _is_elf(program):
        if params.rules or params.sampling or params.size:
            raise UsageError(
                f"--rules, --sampling and --size need an ELF program, but {program} is something else",
                "name the program that the command runs with --binary (-b)",
            )
        if is_wanted(params):
            raise UsageError(
                f"optimizations need an ELF program, but {program} is something else",
                "name the program that the command runs with --binary (-b)",
            )
        return Selection(encoded([], only_listed=False), "", {}, [])
    with Binary(program, ctx.cache) as binary:
        notes: list[str] = []
        if not binary.functions:
            notes.append(
                f"{os.path.basename(program)} has no symbols: its functions are named by addresses, and have "
                "no sizes; build it without -s (strip)"
            )
        listed = _listed(binary, params, notes)
        sizes = _sizes(binary, listed, params, notes)
        every = _sampling(binary, params, notes)
        applied = _optimized(binary, listed, every, params, ctx, run)
        if applied is not None:
            listed = _kept(listed, applied, every)
            notes += applied.notes + _unsupported(applied)
        functions = [
            TableFunction(one.address, one.size, one in listed, every.get(one.address, 1))
            for one in binary.functions
        ]
        table = encoded(
            [FileSelection(binary.path, functions, programs(binary, sizes))], only_listed=bool(params.rules)
        )
        texts = {one.address: size.text for one, size in sizes.items()}
        return Selection(table, binary.path, texts, [*binary.notes, *notes], applied)


def _optimized(
    binary: Binary,
    listed: frozenset[Symbol],
    every: Mapping[int, int],
    params: ComplexityParams,
    ctx: CollectContext,
    run: Run | None,
) -> OptimizationResult | None:
    """What the optimisations decide on the functions, in the order of their addresses."""
    if run is None or not is_wanted(params):
        return None
    candidates = [
        TraceCandidate(one.name, one.symbol, one.address, bool(params.rules), every.get(one.address, 1))
        for one in _ordered(listed)
    ]
    return apply(run, binary.path, "complexity", candidates, params, ctx)


def _kept(listed: frozenset[Symbol], applied: OptimizationResult, every: dict[int, int]) -> frozenset[Symbol]:
    """The functions that stay; `every` gets how they are sampled."""
    kept = set()
    for one, decision in zip(_ordered(listed), applied.decisions, strict=True):
        if decision.kept:
            kept.add(one)
            every[one.address] = decision.sampling
    return frozenset(kept)


def _ordered(listed: frozenset[Symbol]) -> list[Symbol]:
    return sorted(listed, key=lambda one: one.address)


def _unsupported(applied: OptimizationResult) -> tuple[str, ...]:
    """What of the optimisations acts while a program runs, which the recorder cannot."""
    threshold, _, period = applied.switching
    names = {"dynamic-probing": threshold > 0, "timed-sampling": period > 0}
    return tuple(
        f"{name} has no effect: what the compiler added stays in the program; use perun collect trace"
        for name, is_asked in names.items()
        if is_asked
    )


def _is_elf(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError as problem:
        raise JobFailed(
            f"cannot read the program {path}: {problem.strerror}", "check the path and its permissions"
        ) from None


def _listed(binary: Binary, params: ComplexityParams, notes: list[str]) -> frozenset[Symbol]:
    if not params.rules:
        return frozenset(binary.own_functions)
    found = _found(binary, params.rules, notes)
    if not found:
        raise UsageError("; ".join(notes), "name functions of the program with --rules (-r)")
    return frozenset(found)


def _found(binary: Binary, names: Iterable[str], notes: list[str]) -> list[Symbol]:
    """The functions of these names; a note names each one that does not exist, because others may."""
    found: list[Symbol] = []
    for name in names:
        try:
            found += binary.find(name)
        except UsageError as problem:
            notes.append(": ".join(filter(None, (problem.message, problem.hint))))
    return found


def _sampling(binary: Binary, params: ComplexityParams, notes: list[str]) -> dict[int, int]:
    return {
        function.address: every
        for name, every in params.sampling
        for function in _found(binary, [name], notes)
    }


def _sizes(
    binary: Binary, listed: Iterable[Symbol], params: ComplexityParams, notes: list[str]
) -> dict[Symbol, Size]:
    wanted = [function for function in listed if not _is_without_size(function)]
    sizes = {function: find_size(binary, function) for function in wanted}
    for text in params.size:
        name, _, expression = text.partition("=")
        for function in _found(binary, [name.strip()], notes):
            sizes[function] = size_of(binary, function, expression.strip())
    return {function: size for function, size in sizes.items() if size is not None}


def _is_without_size(function: Symbol) -> bool:
    """Whether it is `main`, whose parameters are no sizes, or a constructor, whose object has no size yet."""
    *scopes, name = without_arguments(plain_name(function.name)).split("::")
    return function.symbol == "main" or scopes[-1:] == [name]


def _location(path: str, cwd: Path, scratch: Path) -> str:
    """The path of a binary, made the same for every run: relative to the project or to the build folder."""
    for folder in (scratch / "target", cwd):
        real = os.path.realpath(folder)
        if path.startswith(real + os.sep):
            return os.path.relpath(path, real)
    return path
