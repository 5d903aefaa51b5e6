"""What an address of data is called in a fingerprint: by what is there, not by where that is."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from perun.callgraph.image import Image

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
