"""The ranges of code in `.eh_frame` (Linux Standard Base 5.0, "Exception Frames"): functions, also of
stripped programs.

Only where an entry begins and ends is read, and whether it begins with something on the stack.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from perun.callgraph.image import Frame

_FORMS: Final = {0x00: "<Q", 0x02: "<H", 0x03: "<I", 0x04: "<Q", 0x0A: "<h", 0x0B: "<i", 0x0C: "<q"}
_RELATIVE: Final = 0x10
_EXTENDED: Final = 0xFFFFFFFF
_NOTHING, _ADVANCES = 0, (2, 3, 4)
"""Instructions (DW_CFA_nop, DW_CFA_advance_loc1 ...) after which others say nothing of the start of a
range."""


class _Common(NamedTuple):
    """What several entries share (a CIE): how addresses are written, and whether data follow them."""

    form: str
    is_relative: bool
    has_data: bool


def frames_of(data: bytes, address: int) -> Iterator[Frame]:
    """The entries of the section `.eh_frame` that is loaded at an address, in the order of the section.

    What is damaged ends it.
    """
    common: dict[int, _Common | None] = {}
    at = 0
    while at + 8 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        start = at + 4
        if length == _EXTENDED:
            (length,) = struct.unpack_from("<Q", data, start)
            start += 8
        end = start + length
        if not length or end > len(data):
            return
        (identifier,) = struct.unpack_from("<I", data, start)
        if not identifier:
            common[at] = _common(data, start + 4, end)
        elif (shared := common.get(start - identifier)) is not None:
            yield _frame(data, start + 4, end, address, shared)
        at = end


def _common(data: bytes, at: int, end: int) -> _Common | None:
    """The part that is shared by entries; None where addresses are written in a way that is not known."""
    text_end = data.index(b"\0", at + 1, end)
    augmentation = data[at + 1 : text_end].decode("latin-1")
    at = text_end + 1
    for _ in range(3):  # factors of code and data, register of the return address
        _, at = _leb(data, at)
    encoding = 0
    if augmentation.startswith("z"):
        _, at = _leb(data, at)
        for letter in augmentation[1:]:
            if letter == "R":
                encoding = data[at]
                break
            if letter == "P":
                form = _FORMS.get(data[at] & 0x0F)
                if form is None:
                    return None
                at += 1 + struct.calcsize(form)
            elif letter == "L":
                at += 1
    form = _FORMS.get(encoding & 0x0F)
    if form is None or encoding & 0x60:
        return None
    return _Common(form, bool(encoding & _RELATIVE), augmentation.startswith("z"))


def _frame(data: bytes, at: int, end: int, address: int, common: _Common) -> Frame:
    width = struct.calcsize(common.form)
    (start,) = struct.unpack_from(common.form, data, at)
    if common.is_relative:
        start += address + at
    (size,) = struct.unpack_from(common.form.upper().replace("<Q", "<Q"), data, at + width)
    at += 2 * width
    if common.has_data:
        length, at = _leb(data, at)
        at += length
    first = data[at] if at < end else _NOTHING
    is_piece = first != _NOTHING and first not in _ADVANCES and first & 0xC0 != 0x40
    return Frame(start, size, is_piece)


def _leb(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number in LEB128, and the place after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
