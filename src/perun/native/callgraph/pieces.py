"""Which ranges of the code belong to which function.

A function may have several: compilers put code that hardly ever runs elsewhere (`.cold`, `.part.0`).
Functions come from symbols, from the ranges of `.eh_frame`, which also stripped programs have, and from what
is called.
"""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from perun.native.callgraph.decode import JUMP, Code, Decoder
from perun.native.callgraph.image import Area, Frame, Image, Symbol

_LINKAGE: Final = re.compile(r"\.i?plt(\.\w+)?")
_ROUNDS: Final = 8
"""How often functions are looked for in what was found to be called: functions call others."""


def is_linkage(area: Area) -> bool:
    """Whether a section is a procedure linkage table: stubs that jump to functions of other files."""
    return area.executable and bool(_LINKAGE.fullmatch(area.name))


class Pieces:
    """The pieces of all functions of an image, with their instructions.

    :ivar starts: the addresses where pieces begin, in their order. :ivar owner: by start, the address of the
        function. :ivar code: by start, the instructions. :ivar symbols: by address, the best symbol.
    """

    def __init__(self, image: Image, decoder: Decoder) -> None:
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

    def _decoded(self, start: int) -> Code:
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


def _uncovered(frames: Iterable[Frame], ends: dict[int, int]) -> list[tuple[int, Frame]]:
    """The frames that begin in no symbol, by their addresses."""
    starts = sorted(ends)
    found = []
    for frame in frames:
        place = bisect_right(starts, frame.address) - 1
        inside = place >= 0 and (frame.address == starts[place] or frame.address < ends[starts[place]])
        if not inside:
            found.append((frame.address, frame))
    return found


def _leaving(code: Code) -> Iterator[int]:
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

    def __init__(self, image: Image, decoder: Decoder) -> None:
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

    def _stubs_of(self, area: Area, decoder: Decoder) -> dict[int, Import]:
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
