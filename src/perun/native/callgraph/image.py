"""A program as its call graph needs it: what is loaded where, and what its symbols and relocations say."""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from typing import Final, NamedTuple

_WORD: Final = struct.Struct("<Q")


class Area(NamedTuple):
    """A section that is loaded: its bytes from `address` on; none where it holds only zeros (`.bss`).

    :ivar size: bytes in memory.
    """

    name: str
    address: int
    data: bytes
    size: int
    executable: bool = False
    writable: bool = False

    @property
    def end(self) -> int:
        """The address after it."""
        return self.address + self.size


class Symbol(NamedTuple):
    """A function of a symbol table.

    :ivar symbol: its name for the linker. :ivar uid: its name in profiles. :ivar size: bytes; 0 where the
        table does not say it. :ivar source: the source file of a function that other files do not see.
    :ivar part_of: the symbol of the function that it is an outlined piece of (`.cold`, `.part.0`).
    """

    symbol: str
    uid: str
    address: int
    size: int
    source: str = ""
    own: bool = True
    part_of: str = ""


class FrameDescription(NamedTuple):
    """A range of code that is unwound in one way (an entry of `.eh_frame`): a function, or a piece of one.

    :ivar is_piece: whether something is on the stack already where it begins, as only in a piece.
    """

    address: int
    size: int
    is_piece: bool = False


class Image(NamedTuple):
    """A program, or a library.

    :ivar entry: address of the first instruction of a program. :ivar movable: whether it can be loaded
        anywhere, so that a number in its code is no address.
    :ivar areas: in the order of their addresses. :ivar symbols: of functions, the best of one address first.
    :ivar objects: address, size and name of data, in the order of the addresses.
    :ivar imports: for each slot that the dynamic linker fills, the name of what it puts there.
    :ivar pointers: for each slot that is relocated, the address in this image that it gets.
    :ivar resolvers: the functions among these that choose, when the program starts, which other one is meant
        (`ifunc`).
    """

    build_id: str
    entry: int
    movable: bool
    areas: Sequence[Area]
    symbols: Sequence[Symbol] = ()
    frames: Sequence[FrameDescription] = ()
    objects: Sequence[tuple[int, int, str]] = ()
    imports: Mapping[int, str] = {}
    pointers: Mapping[int, int] = {}
    resolvers: Set[int] = frozenset()

    def area(self, address: int) -> Area | None:
        """The section that has an address."""
        place = bisect_right(self.areas, address, key=lambda one: one.address) - 1
        found = self.areas[place] if place >= 0 else None
        return found if found is not None and address < found.end else None

    def bytes_at(self, address: int, size: int) -> bytes:
        """What is at an address; fewer bytes at the end of a section, none where there is nothing."""
        area = self.area(address)
        start = address - area.address if area is not None else 0
        return area.data[start : start + size] if area is not None else b""

    def pointer_at(self, address: int) -> int:
        """The address that is at an address once the program is loaded; 0 where there is none."""
        if address in self.pointers:
            return self.pointers[address]
        data = self.bytes_at(address, _WORD.size)
        return int(_WORD.unpack(data)[0]) if len(data) == _WORD.size else 0


# What an address of data is called in a fingerprint: by what is there, not by where that is.

_TEXT: Final = re.compile(rb"[\t\n\r\x1b\x20-\x7e\x80-\xff]{0,4096}\0")
_NUMBERED: Final = re.compile(r"\.\d+$")
"""What compilers put after the names of static variables of functions; it changes with other functions."""
_MAX_CONSTANT: Final = 64


class DataNames:
    """Names of the data of an image."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._starts = [address for address, *_ in image.objects]
        self._known: dict[tuple[int, int], str] = {}

    def name(self, address: int, width: int = 0) -> str:
        """What is at an address: a variable, a text, or a constant of `width` bytes; else the section.

        :param width: 0 where only the address is used.
        """
        key = address, width
        if key not in self._known:
            self._known[key] = self._variable(address) or self._content(address, width)
        return self._known[key]

    def _variable(self, address: int) -> str:
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return ""
        start, size, name = self._image.objects[place]
        inside = address == start or address < start + size
        return f"{_NUMBERED.sub('', name)}+{address - start}" if inside else ""

    def _content(self, address: int, width: int) -> str:
        area = self._image.area(address)
        if area is None:
            return "?"
        if area.writable or area.executable:
            return self._image.imports.get(address) or area.name
        if 0 < width <= _MAX_CONSTANT:
            return self._image.bytes_at(address, width).hex()
        text = _TEXT.match(area.data, address - area.address)
        return repr(text[0]) if text is not None and len(text[0]) > 1 else area.name
