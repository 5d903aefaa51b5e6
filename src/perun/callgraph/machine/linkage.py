"""What a call leads to that goes through the procedure linkage table or a slot of the dynamic linker."""

from __future__ import annotations

from typing import Final, NamedTuple

from perun.callgraph.image import Area, Image
from perun.callgraph.machine.decode import JUMP, Decoder
from perun.callgraph.machine.pieces import is_linkage

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
