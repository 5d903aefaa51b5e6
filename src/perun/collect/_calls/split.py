"""Debug information that `-gsplit-dwarf` put into files of its own (DWARF 5, section 3.1.3).

The program has a skeleton of each source, which names the file `.dwo` with all the rest. Addresses stay in
the program: the file refers to them by their positions in a part of its table.
"""

from __future__ import annotations

import contextlib
import os
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.elf import Damaged, checked, with_debug_information

_HEADER: Final = 8
"""Bytes before the first address of a table of its own, as readers expect it."""
_VERSION: Final = 5
"""Of DWARF: what compilers wrote before was an extension of theirs."""
_NAMES: Final = ("DW_AT_dwo_name", "DW_AT_GNU_dwo_name")


class Skeleton(NamedTuple):
    """What a program says of a file with debug information.

    :param name: as the compiler wrote it. :param folder: of the compilation. :param version: of DWARF.
    :param addresses: position of its addresses in the table of the program.
    """

    name: str
    folder: str
    version: int
    addresses: int

    @classmethod
    def of(cls, unit: Any) -> Skeleton | None:
        """The skeleton that a unit is; None for any other unit."""
        attributes = unit.get_top_DIE().attributes
        name = next((attributes[one].value for one in _NAMES if one in attributes), None)
        if name is None:
            return None
        folder = attributes["DW_AT_comp_dir"].value if "DW_AT_comp_dir" in attributes else b""
        base = attributes["DW_AT_addr_base"].value if "DW_AT_addr_base" in attributes else _HEADER
        return cls(_text(name), _text(folder), unit["version"], base)

    def path(self, program: str) -> Path | None:
        """The file: where it was compiled, or beside the program; None where it is gone."""
        places = (Path(self.folder, self.name), Path(program).parent / os.path.basename(self.name))
        return next((place for place in places if place.is_file()), None)


def read_split(skeleton: Skeleton, program: Any, path: Path) -> Any:
    """The debug information (DWARFInfo of pyelftools) in a file; None where it is of a kind that is not read.

    :param program: that of the program itself.
    :raises Damaged: where it cannot be read.
    """
    if skeleton.version < _VERSION or program.debug_addr_sec is None:
        return None
    table = program.debug_addr_sec
    table.stream.seek(max(skeleton.addresses - _HEADER, 0))
    addresses = BytesIO(table.stream.read())
    sections: dict[str, Any] = dict.fromkeys(_SECTIONS)
    with checked(), path.open("rb") as file:
        from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DWARFInfo

        for section in with_debug_information(file).iter_sections():
            key = section.name.removesuffix(".dwo").removeprefix(".") + "_sec"
            if section.name.endswith(".dwo") and key in sections:
                data = section.data()
                sections[key] = DebugSectionDescriptor(BytesIO(data), section.name, 0, len(data), 0)
        sections["debug_addr_sec"] = table._replace(stream=addresses)
        found = DWARFInfo(program.config, **sections)
        for unit in found.iter_CUs():
            _add_positions(unit)
        return found


def _add_positions(unit: Any) -> None:
    """Add what such a file leaves out: its tables begin right behind their headers."""
    with contextlib.suppress(Damaged), checked():  # of the first entry itself, which refers to the tables
        unit.get_top_DIE()
    attributes = unit.get_top_DIE().attributes
    example = next(iter(attributes.values()))
    for name, position in _POSITIONS.items():
        attributes.setdefault(name, example._replace(name=name, value=position, raw_value=position))


_POSITIONS: Final = {
    "DW_AT_str_offsets_base": 8,
    "DW_AT_addr_base": _HEADER,
    "DW_AT_rnglists_base": 12,
    "DW_AT_loclists_base": 12,
}
_SECTIONS: Final = (
    *("debug_info_sec", "debug_aranges_sec", "debug_abbrev_sec", "debug_frame_sec", "eh_frame_sec"),
    *("debug_str_sec", "debug_loc_sec", "debug_ranges_sec", "debug_line_sec", "debug_pubtypes_sec"),
    *("debug_pubnames_sec", "debug_addr_sec", "debug_str_offsets_sec", "debug_line_str_sec"),
    *("debug_loclists_sec", "debug_rnglists_sec", "debug_sup_sec", "gnu_debugaltlink_sec", "debug_types_sec"),
)


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
