"""The call graph of a program from its machine code (x86-64)."""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from perun.native.callgraph.coloring import Colors
from perun.native.callgraph.decode import CALL, JUMP, InstructionDecoder, InstructionForm, MachineCode
from perun.native.callgraph.flow import Exit, Flow, digest, flow_of, flow_text
from perun.native.callgraph.graph import UNKNOWN, CallEdge, CallGraph, Fingerprints, GraphFunction, Kind
from perun.native.callgraph.image import Area, DataNames, FrameDescription, Image, Symbol

# Which ranges of the code belong to which function.
#
# A function may have several: compilers put code that hardly ever runs elsewhere (`.cold`, `.part.0`).
# Functions come from symbols, from the ranges of `.eh_frame`, which also stripped programs have, and from
# what is called.

_LINKAGE: Final = re.compile(r"\.i?plt(\.\w+)?")
_ROUNDS: Final = 8
"""How often functions are looked for in what was found to be called: functions call others."""


def is_linkage(area: Area) -> bool:
    """Whether a section is a procedure linkage table: stubs that jump to functions of other files."""
    return area.executable and bool(_LINKAGE.fullmatch(area.name))


class CodePieces:
    """The pieces of all functions of an image, with their instructions.

    :ivar starts: the addresses where pieces begin, in their order. :ivar owner: by start, the address of the
        function. :ivar code: by start, the instructions. :ivar symbols: by address, the best symbol.
    """

    def __init__(self, image: Image, decoder: InstructionDecoder) -> None:
        self._image = image
        self._decoder = decoder
        self._leads: dict[int, list[int]] = {}
        self.symbols = self._best_symbols(image.symbols)
        frames = {one.address: one for one in image.frames if self._area(one.address) is not None}
        ends = {address: address + one.size for address, one in self.symbols.items()}
        ends |= {at: at + one.size for at, one in _uncovered(frames.values(), ends)}
        if self._area(image.entry) is not None:
            ends.setdefault(image.entry, image.entry)
        self.starts = sorted(ends)
        self.owner = {start: start for start in self.starts}
        self._sized = {start: end for start, end in ends.items() if end > start}
        self.code = {start: self._decoded(start) for start in self.starts}
        self._find_called()
        self._join_parts()
        self._join_pieces({start for start, one in frames.items() if one.is_piece})

    def at(self, address: int) -> int:
        """The start of the piece that has an address; -1 for none."""
        place = bisect_right(self.starts, address) - 1
        if place < 0:
            return -1
        start = self.starts[place]
        return start if address == start or address < self._end(start) else -1

    def function_at(self, address: int) -> int:
        """The address of the function that has an address; -1 for none."""
        start = self.at(address)
        return self.owner[start] if start >= 0 else -1

    def functions(self) -> dict[int, list[int]]:
        """The starts of the pieces of each function, its own first, in the order of their addresses."""
        found: dict[int, list[int]] = {start: [start] for start in self.starts if self.owner[start] == start}
        for start in self.starts:
            if self.owner[start] != start:
                found[self.owner[start]].append(start)
        return found

    def _area(self, address: int) -> Area | None:
        area = self._image.area(address)
        return area if area is not None and area.executable and not is_linkage(area) else None

    def _best_symbols(self, symbols: Iterable[Symbol]) -> dict[int, Symbol]:
        best: dict[int, Symbol] = {}
        for symbol in symbols:
            if self._area(symbol.address) is not None:
                best.setdefault(symbol.address, symbol)
        return best

    def _end(self, start: int) -> int:
        """The end of a piece: what is known of it, but no more than up to the next one."""
        place = bisect_right(self.starts, start)
        area = self._area(start)
        limit = area.end if area is not None else start
        if place < len(self.starts):
            limit = min(limit, self.starts[place])
        return min(limit, self._sized.get(start, limit))

    def _decoded(self, start: int) -> MachineCode:
        code = self._decoder.code(start, self._end(start))
        if start not in self._sized:
            code.drop_filling()
        self._leads[start] = list(_leaving(code))
        return code

    def _find_called(self) -> None:
        """Add the functions that no symbol and no frame tells of, because others or pointers lead to them."""
        fresh: list[int] = self.starts
        called = {*self._image.pointers.values(), *self._run_by_start()}
        for _ in range(_ROUNDS):
            called.update(target for start in fresh for target in self._leads[start])
            fresh = sorted(one for one in called if self.at(one) < 0 and self._area(one) is not None)
            for start in fresh:
                insort(self.starts, start)
                self.owner[start] = start
            for start in fresh:
                self.code[start] = self._decoded(start)
            if not fresh:
                return
            called.clear()

    def _run_by_start(self) -> Iterator[int]:
        """The functions that are run before `main` and after it."""
        for area in self._image.areas:
            if area.name in (".init", ".fini"):
                yield area.address
            elif area.name in (".init_array", ".fini_array"):
                end = area.address + len(area.data)
                yield from (self._image.pointer_at(at) for at in range(area.address, end, 8))

    def _middles(self, start: int) -> Iterator[int]:
        """The pieces into the middle of which a piece leads."""
        for target in self._leads[start]:
            piece = self.at(target)
            if piece not in (-1, target):
                yield piece

    def _join_parts(self) -> None:
        """Give outlined pieces that have a symbol to the function that their names tell."""
        by_name: dict[str, list[Symbol]] = {}
        for symbol in self._image.symbols:
            by_name.setdefault(symbol.symbol, []).append(symbol)
        for start, symbol in self.symbols.items():
            if not symbol.part_of:
                continue
            whole = [one for one in by_name.get(symbol.part_of, ()) if one.address in self.owner]
            same = [one for one in whole if one.source == symbol.source] or whole
            if same:
                nearest = min(same, key=lambda one: abs(one.address - start))
                self.owner[start] = self.owner[nearest.address]

    def _join_pieces(self, unwound: set[int]) -> None:
        """Give pieces without a symbol to the function that jumps into them, or that they jump back into."""
        loose = [start for start in self.starts if start in unwound and start not in self.symbols]
        if not loose:
            return
        into: dict[int, list[int]] = {}
        for start in self.starts:
            for target in self._leads[start]:
                into.setdefault(self.at(target), []).append(start)
        for _ in range(2):  # a piece may be reached from another one only
            for start in loose:
                near = [*into.get(start, ()), *self._middles(start)]
                owners = [self.owner[one] for one in near if self.owner[one] not in unwound]
                if owners:
                    self.owner[start] = max(sorted(set(owners)), key=owners.count)


def _uncovered(
    frames: Iterable[FrameDescription], ends: dict[int, int]
) -> list[tuple[int, FrameDescription]]:
    """The frames that begin in no symbol, by their addresses."""
    starts = sorted(ends)
    found = []
    for frame in frames:
        place = bisect_right(starts, frame.address) - 1
        inside = place >= 0 and (frame.address == starts[place] or frame.address < ends[starts[place]])
        if not inside:
            found.append((frame.address, frame))
    return found


def _leaving(code: MachineCode) -> Iterator[int]:
    """Where calls and jumps of some code lead to beyond it, as far as they say it."""
    return (target for _, target in code.targets() if not code.start <= target < code.end)


# What a call leads to that goes through the procedure linkage table or a slot of the dynamic linker.

_FIXED: Final = (".got", ".got.plt", ".data.rel.ro", ".rodata", ".init_array", ".fini_array")
"""Sections whose pointers do not change once the program is loaded."""


class Import(NamedTuple):
    """What a slot leads to: a function of another file by its name, or the address of one of this file."""

    name: str = ""
    address: int = -1


class Linkage:
    """The stubs and slots of an image."""

    def __init__(self, image: Image, decoder: InstructionDecoder) -> None:
        self._image = image
        self._stubs: dict[int, Import] = {}
        for area in image.areas:
            if is_linkage(area):
                self._stubs |= self._stubs_of(area, decoder)

    def stub(self, address: int) -> Import | None:
        """What the stub at an address leads to; None where there is none."""
        return self._stubs.get(address)

    def slot(self, address: int) -> Import | None:
        """What a pointer at an address leads to, where that is fixed; None where it may change."""
        name = self._image.imports.get(address)
        if name is not None:
            return Import(name)
        area = self._image.area(address)
        if area is None or not (area.name in _FIXED or not area.writable):
            return None
        pointer = self._image.pointer_at(address)
        return Import(address=pointer) if pointer else None

    def _stubs_of(self, area: Area, decoder: InstructionDecoder) -> dict[int, Import]:
        """The stubs of a table: each jumps through its slot, maybe after a mark (`endbr64`)."""
        found: dict[int, Import] = {}
        start = 0
        code = decoder.code(area.address, area.end)
        for position, (address, form) in enumerate(zip(code.addresses, code.forms, strict=True)):
            if form.mnemonic == "endbr64":
                start = address
                continue
            is_through = form.kind == JUMP and form.is_relative
            target = self.slot(code.leads[position]) if is_through else None
            if target is not None:
                found[start or address] = target
            start = 0
        return found


# What the instructions of a function say of addresses, in words that do not depend on where the linker put
# things.

_WIDTHS: Final = {
    "byte": 1, "word": 2, "dword": 4, "qword": 8, "xword": 10, "xmmword": 16, "ymmword": 32, "zmmword": 64
}  # fmt: skip
_WIDTH: Final = re.compile(r"(\w+) ptr \[")
FunctionAt = Callable[[int], str]


class Texts(NamedTuple):
    """What is at the addresses that a function names; jumps and calls apart.

    :ivar names: by position of the instruction, what is there. :ivar taken: likewise, the function there.
    """

    names: dict[int, str]
    taken: dict[int, str]

    def lines(self, flow: Flow) -> list[str]:
        """The instructions of the function, each with the name of what is at its address."""
        lines = [form.line for form in flow.code]
        for position, name in self.names.items():
            lines[position] += f" {name}"
        return lines


class Tokens:
    """Names what is at the addresses that instructions name.

    :param function_at: the name of the function that begins at an address; empty for none.
    :param movable: as of :class:`perun.native.callgraph.image.Image`.
    """

    def __init__(self, data: DataNames, function_at: FunctionAt, *, movable: bool) -> None:
        self._data = data
        self._function_at = function_at
        self._movable = movable
        self._widths: dict[int, int] = {}

    def texts(self, flow: Flow) -> Texts:
        """The names for the instructions of a function."""
        texts = Texts({}, {})
        code = flow.code
        for position, address in flow.places.items():
            if position not in flow.exits:
                self._name(texts, position, address, self._width(code[position]))
        if not self._movable:
            for position, form in enumerate(code):
                if form.constant >= 0:
                    self._name(texts, position, form.constant, 0)
        return texts

    def _name(self, texts: Texts, position: int, address: int, width: int) -> None:
        function = self._function_at(address)
        if function:
            texts.taken[position] = function
        name = "function" if function else self._data.name(address, width)
        before = texts.names.get(position)  # an instruction may name a place and a number
        texts.names[position] = f"{before} {name}" if before else name

    def _width(self, form: InstructionForm) -> int:
        width = self._widths.get(form.number)
        if width is None:
            found = _WIDTH.search(form.operands)
            width = 0 if form.mnemonic == "lea" or found is None else _WIDTHS.get(found[1], 0)
            self._widths[form.number] = width
        return width


# The call graph of an image: functions, their control flow, and the calls between them.

_AT_ONCE: Final = 400_000
"""Instructions whose registers are followed at once, which takes some 200 MB meanwhile."""
_MAINS: Final = ("main.main", "main")
_START_CODE: Final = 64
"""Instructions at the start of a program among which the address of `main` is loaded."""


def extract(image: Image, colors: Mapping[str, str] | None = None) -> CallGraph:
    """The call graph of a program for x86-64.

    :param colors: digests `color` by digests `strict` that are known, of other versions of the program: equal
        functions are equal up to the names of registers, too.
    """
    return _Extraction(image, colors or {}).graph()


class _Extraction:
    def __init__(self, image: Image, colors: Mapping[str, str]) -> None:
        self._image = image
        decoder = InstructionDecoder(image)
        self._pieces = CodePieces(image, decoder)
        self._linkage = Linkage(image, decoder)
        self._functions = self._pieces.functions()
        self._main = self._find_main()
        self._symbols = {start: self._symbol(start) for start in self._functions}
        self._names = _unique_names(self._symbols)
        names = self._names
        # A method of this object in one of its fields would keep all instructions until a search for cycles.
        self._tokens = Tokens(DataNames(image), lambda at: names.get(at, ""), movable=image.movable)
        self._colors = _Colors(Colors(decoder), colors)

    def graph(self) -> CallGraph:
        found: dict[str, GraphFunction] = {}
        calls: dict[CallEdge, None] = {}
        taken: set[str] = {self._names[to] for to in self._image.pointers.values() if to in self._names}
        taken |= self._in_data()
        for start, pieces in self._functions.items():
            flow = flow_of(self._image, [self._pieces.code[piece] for piece in pieces])
            function, used, leads = self._function(start, pieces, flow)
            found[function.name] = function
            taken |= used
            for call in leads:
                calls[call] = None
        colors = self._colors.all()
        functions = {
            name: one._replace(
                fingerprints=one.fingerprints._replace(color=colors[one.fingerprints.strict]),
                address_taken=name in taken,
            )
            for name, one in found.items()
        }
        entry = self._name_at(self._main) or self._name_at(self._image.entry)
        return CallGraph(self._image.build_id, entry, functions, tuple(calls))

    def _function(
        self, start: int, pieces: Sequence[int], flow: Flow
    ) -> tuple[GraphFunction, set[str], list[CallEdge]]:
        """The function at an address, the functions that it has pointers to, and its calls."""
        symbol, name = self._symbols[start], self._names[start]
        texts = self._tokens.texts(flow)
        used = texts.taken
        calls = {position: list(self._calls(name, flow, one)) for position, one in flow.exits.items()}
        sites: list[str] = []
        lines, opcodes = texts.lines(flow), [form.mnemonic for form in flow.code]
        ordered: tuple[list[str], list[str]] = ([], [])
        named = {**used, **calls}
        for block in flow.blocks:
            ordered[0].extend(opcodes[block.start : block.stop])
            ordered[1].extend(lines[block.start : block.stop])
            for position in block if named else ():
                if position in calls:
                    sites += [call.callee for call in calls[position]]
                elif position in used:
                    sites.append(used[position])
        text = flow_text(flow)
        semistrict, strict = (digest(text, one) for one in ordered)
        self._colors.add(strict, text, flow, texts.names)
        fingerprints = Fingerprints(digest(text), semistrict, strict)
        size = sum(self._pieces.code[piece].size for piece in pieces)
        function = GraphFunction(
            name, symbol.uid, symbol.symbol, start, size, len(flow.code), fingerprints, tuple(sites), text,
            symbol.own,
        )  # fmt: skip
        return function, set(used.values()), list(chain.from_iterable(calls.values()))

    def _calls(self, caller: str, flow: Flow, leads: Exit) -> Iterator[CallEdge]:
        """The call that an instruction is which leads out of a function."""
        kind: Kind = "direct" if leads.kind == CALL else "tail"
        if leads.target < 0:
            place = flow.places.get(leads.position)
            slot = self._linkage.slot(place) if place is not None else None
            if slot is None:
                yield CallEdge(caller, UNKNOWN, "indirect")
            elif slot.name or slot.address in self._names:
                yield CallEdge(caller, self._import_name(slot), "plt")
            else:
                yield CallEdge(caller, UNKNOWN, "indirect")
            return
        stub = self._linkage.stub(leads.target)
        if stub is not None:
            yield CallEdge(caller, self._import_name(stub) or UNKNOWN, "plt")
            if stub.address in self._image.resolvers:
                yield CallEdge(caller, UNKNOWN, "indirect")
            return
        callee = self._pieces.function_at(leads.target)
        if callee >= 0 and self._names[callee] != caller:
            yield CallEdge(caller, self._names[callee], kind)
        elif callee >= 0 and leads.target == callee:
            yield CallEdge(caller, caller, kind)

    def _import_name(self, found: Import) -> str:
        return found.name or self._names.get(self._pieces.function_at(found.address), "")

    def _name_at(self, address: int) -> str:
        return self._names.get(address, "")

    def _symbol(self, start: int) -> Symbol:
        known = self._pieces.symbols.get(start)
        if known is not None:
            return known
        if start == self._main:
            return Symbol("", "main", start, 0)
        return Symbol("", f"sub_{start:x}", start, 0, own=start != self._image.entry)

    def _find_main(self) -> int:
        """The address of `main`, or of `main.main` in Go, to which only a pointer leads; without a symbol of
        it, what the start of the program passes on; -1 for none."""
        symbols = {one.symbol: address for address, one in self._pieces.symbols.items()}
        named = [symbols[name] for name in _MAINS if name in symbols]
        if named or self._image.entry not in self._pieces.code:
            return named[0] if named else -1
        found = -1
        code = self._pieces.code[self._image.entry]
        for position, form in enumerate(code.forms[:_START_CODE]):
            if form.operands.startswith("rdi,"):
                address = code.leads.get(position, form.constant)
                found = address if address in self._functions else found
            if form.kind in (CALL, JUMP):
                break
        return found

    def _in_data(self) -> set[str]:
        """The functions that data of a program at a fixed place point to."""
        if self._image.movable:
            return set()
        import numpy as np

        starts = np.array(list(self._names), np.uint64)
        found: set[int] = set()
        for area in self._image.areas:
            if not area.executable:
                words = np.frombuffer(area.data[: len(area.data) // 8 * 8], "<u8")
                found.update(np.intersect1d(words, starts).tolist())
        return {self._names[one] for one in found}


class _Colors:
    """The digests `color` of functions by those named `strict`; of many functions at once."""

    def __init__(self, colors: Colors, known: Mapping[str, str]) -> None:
        self._colors = colors
        self._found = dict(known)
        self._waiting: dict[str, tuple[str, Flow, Mapping[int, str]]] = {}
        self._instructions = 0

    def add(self, strict: str, text: str, flow: Flow, names: Mapping[int, str]) -> None:
        """Have the digest of a function made, unless it is known."""
        if strict in self._found or strict in self._waiting:
            return
        self._waiting[strict] = text, flow, names
        self._instructions += len(flow.code)
        if self._instructions > _AT_ONCE:
            self._make()

    def all(self) -> Mapping[str, str]:
        """The digests of all functions that were added."""
        self._make()
        return self._found

    def _make(self) -> None:
        numbers = self._colors.of([(flow, names) for _, flow, names in self._waiting.values()])
        for (strict, (text, _, _)), own in zip(self._waiting.items(), numbers, strict=True):
            self._found[strict] = digest(text, [own.hex()])
        self._waiting.clear()
        self._instructions = 0


def _unique_names(symbols: dict[int, Symbol]) -> dict[int, str]:
    """A name for each function: its uid, with its source file or else a number where others have it, too."""
    counts = Counter(one.uid for one in symbols.values())
    names: dict[int, str] = {}
    used: set[str] = set()
    for address, one in symbols.items():
        name = one.uid if counts[one.uid] == 1 or not one.source else f"{one.source}:{one.uid}"
        number = 1
        unique = name
        while unique in used:
            number += 1
            unique = f"{name}#{number}"
        used.add(unique)
        names[address] = unique
    return names
