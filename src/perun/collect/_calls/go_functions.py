"""The functions of a program that Go compiled, as its section `.gopclntab` lists them, which stays when the
program is stripped.

Its layout is that of Go 1.18 and later (`debug/gosym` of Go's library reads it, too).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

SECTION: Final = ".gopclntab"
_MAGIC: Final = (0xFFFFFFF0, 0xFFFFFFF1)
"""The first word: of Go 1.18 and 1.19, and of those from 1.20 on."""
_HEADER: Final = struct.Struct("<I2xBBQQQQQQQQ")
_ENTRY: Final = struct.Struct("<II")
_WORD: Final = 8


def functions_of_go(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Name, address and size of each function; none where the section is of another layout.

    :raises ValueError: where it is damaged.
    :raises struct.error: where it ends too early.
    """
    if len(data) < _HEADER.size:
        return
    magic, _, word, count, _, text, names, *_, table = _HEADER.unpack_from(data)
    if magic not in _MAGIC or word != _WORD:
        return
    if table + (count + 1) * _ENTRY.size > len(data) + 4:  # the last one has only the end of the code
        raise ValueError(f"{SECTION} ends before its {count} functions")
    starts = [_ENTRY.unpack_from(data, table + number * _ENTRY.size) for number in range(count)]
    (end,) = struct.unpack_from("<I", data, table + count * _ENTRY.size)
    ends = [*(start for start, _ in starts[1:]), end]
    for (start, place), after in zip(starts, ends, strict=True):
        _, name = _ENTRY.unpack_from(data, table + place)
        first = names + name
        yield data[first : data.index(0, first)].decode("utf-8", "replace"), text + start, after - start
