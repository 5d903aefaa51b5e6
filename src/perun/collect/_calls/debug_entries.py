"""What the debug information of a program says of places: of lines of sources, and of functions with code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from perun.elf import Damaged, checked


def lines_of(program: Any, source: str) -> Iterator[tuple[int, int]]:
    """Lines of a source, and the addresses where their statements begin."""
    if program is None:
        return
    files = program["file_entry"]
    first = 0 if program["version"] >= 5 else 1
    for entry in program.get_entries():
        state = entry.state
        if state is None or state.end_sequence or not state.is_stmt:
            continue
        place = state.file - first
        if 0 <= place < len(files):
            name = files[place].name.decode("utf-8", "replace")
            if name == source or name.endswith("/" + source) or source.endswith("/" + name):
                yield state.line, state.address


def with_code(parent: Any) -> Iterator[tuple[int, int]]:
    """Address and entry, as its offset, of every function below the entry that has code."""
    for entry in parent.iter_children():
        if entry.tag == "DW_TAG_subprogram":
            if "DW_AT_low_pc" in entry.attributes:
                yield entry.attributes["DW_AT_low_pc"].value, entry.offset
            elif "DW_AT_ranges" in entry.attributes:
                yield from _first_range(entry)
        elif entry.tag in ("DW_TAG_namespace", "DW_TAG_module"):
            yield from with_code(entry)


def _first_range(entry: Any) -> Iterator[tuple[int, int]]:
    """The start of a function whose cold part lies elsewhere: its first range."""
    lists = entry.dwarfinfo.range_lists()
    if lists is None:
        return
    with contextlib.suppress(Damaged), checked():
        ranges = lists.get_range_list_at_offset(entry.attributes["DW_AT_ranges"].value, cu=entry.cu)
        base = entry.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
        for one in ranges:
            if hasattr(one, "base_address"):
                base = one
                continue
            start = one.begin_offset
            if not getattr(one, "is_absolute", True):
                start += getattr(base, "base_address", getattr(base, "value", 0))
            yield start, entry.offset
            return
