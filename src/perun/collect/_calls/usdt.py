"""Statically defined probes (USDT) of an ELF file, which `sys/sdt.h` notes in the section `.note.stapsdt`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Usdt(NamedTuple):
    """One statically defined probe: its place, its semaphore in the file (0: none) and its operands."""

    provider: str
    name: str
    address: int
    offset: int
    semaphore: int
    arguments: str


def read_probes(elf: Any, offset_of: Callable[[int], int]) -> Iterator[Usdt]:
    """The probes of a file. :param offset_of: the position in the file of an address."""
    section = elf.get_section_by_name(".note.stapsdt")
    if section is None:
        return
    base = elf.get_section_by_name(".stapsdt.base")
    for note in section.iter_notes():
        content = note["n_desc"]
        content = content.encode("latin-1") if isinstance(content, str) else content
        address, linked, semaphore = struct.unpack_from("<QQQ", content)
        # A tool such as prelink may have moved the program after its notes were written.
        shift = base["sh_addr"] - linked if base is not None else 0
        provider, name, arguments, *_ = content[24:].split(b"\0")
        address += shift
        semaphore = offset_of(semaphore + shift) if semaphore else 0
        yield Usdt(
            provider.decode("utf-8", "replace"),
            name.decode("utf-8", "replace"),
            address,
            offset_of(address),
            semaphore,
            arguments.decode("latin-1"),
        )
