"""The call graph of an image: functions, their control flow, and the calls between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from perun.callgraph.graph import UNKNOWN, Call, CallGraph, Fingerprints, Function, Kind
from perun.callgraph.image import Image, Symbol
from perun.callgraph.machine.color import Colors
from perun.callgraph.machine.data import DataNames
from perun.callgraph.machine.decode import (
    CALL,
    JUMP,
    KIND_OF,
    Decoder,
    Instruction,
    relative_place,
    target_of,
)
from perun.callgraph.machine.fingerprints import digest, flow_text
from perun.callgraph.machine.flow import Exit, Flow, flow_of
from perun.callgraph.machine.linkage import Import, Linkage
from perun.callgraph.machine.pieces import Pieces
from perun.callgraph.machine.tokens import Tokens

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
        self._known_colors = dict(colors)
        self._pieces = Pieces(image)
        self._linkage = Linkage(image, Decoder(image))
        self._functions = self._pieces.functions()
        self._main = self._find_main()
        self._symbols = {start: self._symbol(start) for start in self._functions}
        self._names = _unique_names(self._symbols)
        names = self._names
        # A method of this object in one of its fields would keep all instructions until a search for cycles.
        self._tokens = Tokens(DataNames(image), lambda at: names.get(at, ""), movable=image.movable)
        self._colors = Colors(image)

    def graph(self) -> CallGraph:
        found: dict[str, Function] = {}
        calls: dict[Call, None] = {}
        taken: set[str] = {self._names[to] for to in self._image.pointers.values() if to in self._names}
        taken |= self._in_data()
        for start, pieces in self._functions.items():
            flow = flow_of(self._image, [self._pieces.code[piece] for piece in pieces])
            function, used, leads = self._function(start, pieces, flow)
            found[function.name] = function
            taken |= used
            for call in leads:
                calls[call] = None
        functions = {name: one._replace(address_taken=name in taken) for name, one in found.items()}
        entry = self._name_at(self._main) or self._name_at(self._image.entry)
        return CallGraph(self._image.build_id, entry, functions, tuple(calls))

    def _function(
        self, start: int, pieces: Sequence[int], flow: Flow
    ) -> tuple[Function, set[str], list[Call]]:
        """The function at an address, the functions that it has pointers to, and its calls."""
        symbol, name = self._symbols[start], self._names[start]
        texts = self._tokens.texts(flow)
        used = texts.taken
        calls = {position: list(self._calls(name, flow, one)) for position, one in flow.exits.items()}
        sites: list[str] = []
        for position in chain.from_iterable(flow.blocks):
            if position in calls:
                sites += [call.callee for call in calls[position]]
            elif position in used:
                sites.append(used[position])
        text = flow_text(flow)
        lines = texts.lines(flow)
        order = list(chain.from_iterable(flow.blocks))
        strict = digest(text, [lines[one] for one in order])
        color = self._known_colors.get(strict)
        if color is None:
            color = self._known_colors[strict] = digest(text, self._colors.of(flow, texts, lines))
        semistrict = digest(text, [flow.code[one][2] for one in order])
        fingerprints = Fingerprints(digest(text), semistrict, strict, color)
        size = sum(one[1] for piece in pieces for one in self._pieces.code[piece])
        function = Function(
            name, symbol.uid, symbol.symbol, start, size, len(flow.code), fingerprints, tuple(sites), text,
            symbol.own,
        )  # fmt: skip
        return function, set(used.values()), list(chain.from_iterable(calls.values()))

    def _calls(self, caller: str, flow: Flow, leads: Exit) -> Iterator[Call]:
        """The call that an instruction is which leads out of a function."""
        kind: Kind = "direct" if leads.kind == CALL else "tail"
        if leads.target < 0:
            place = flow.places.get(leads.position)
            slot = self._linkage.slot(place.address) if place is not None else None
            if slot is None:
                yield Call(caller, UNKNOWN, "indirect")
            elif slot.name or slot.address in self._names:
                yield Call(caller, self._import_name(slot), "plt")
            else:
                yield Call(caller, UNKNOWN, "indirect")
            return
        stub = self._linkage.stub(leads.target)
        if stub is not None:
            yield Call(caller, self._import_name(stub) or UNKNOWN, "plt")
            if stub.address in self._image.resolvers:
                yield Call(caller, UNKNOWN, "indirect")
            return
        callee = self._pieces.function_at(leads.target)
        if callee >= 0 and self._names[callee] != caller:
            yield Call(caller, self._names[callee], kind)
        elif callee >= 0 and leads.target == callee:
            yield Call(caller, caller, kind)

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
        """The address of `main`; without a symbol of it, what the start of the program passes on; -1 for
        none."""
        named = [address for address, one in self._pieces.symbols.items() if one.symbol == "main"]
        if named or self._image.entry not in self._pieces.code:
            return named[0] if named else -1
        found = -1
        for instruction in self._pieces.code[self._image.entry][:_START_CODE]:
            address = self._address_in(instruction)
            if address in self._functions and instruction[3].startswith("rdi,"):
                found = address
            if KIND_OF[instruction[2]] in (CALL, JUMP):
                break
        return found

    def _address_in(self, instruction: Instruction) -> int:
        place = relative_place(instruction)
        if place is not None:
            return place.address
        value = instruction[3].rpartition(", ")[2]
        return target_of(value) if instruction[2] == "mov" else -1

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
