"""The list of functions that a stripped program of Go still has."""

from __future__ import annotations

import struct

import pytest

from perun.native.image import functions_of_go

TEXT = 0x401000
HEADER = 72


def section(functions: list[tuple[str, int]], end: int, magic: int = 0xFFFFFFF1) -> bytes:
    """A section with functions at offsets in the code, laid out as Go 1.20 does: header, names, functions."""
    names = b"".join(name.encode() + b"\0" for name, _ in functions)
    table, infos = b"", b""
    first = 8 * len(functions) + 4
    at = 0
    for name, start in functions:
        table += struct.pack("<II", start, first + len(infos))
        infos += struct.pack("<II", start, at)
        at += len(name.encode()) + 1
    table += struct.pack("<I", end)
    header = struct.pack(
        "<I2xBBQQQQQQQQ", magic, 1, 8, len(functions), 0, TEXT, HEADER, 0, 0, 0, HEADER + len(names)
    )
    return header + names + table + infos


FUNCTIONS = [("runtime.main", 0), ("main.main", 64), ("main.(*é).String", 80)]


@pytest.mark.parametrize("magic", [0xFFFFFFF0, 0xFFFFFFF1])
def test_functions_have_their_names_addresses_and_sizes(magic: int) -> None:
    assert list(functions_of_go(section(FUNCTIONS, 200, magic))) == [
        ("runtime.main", TEXT, 64),
        ("main.main", TEXT + 64, 16),
        ("main.(*é).String", TEXT + 80, 120),
    ]


def test_another_layout_has_none() -> None:
    assert not list(functions_of_go(section(FUNCTIONS, 200, 0xFFFFFFFB)))
    assert not list(functions_of_go(b"\xf1\xff\xff\xff"))


@pytest.mark.parametrize("kept", [HEADER, HEADER + 60, -20])
def test_a_damaged_one_is_named(kept: int) -> None:
    with pytest.raises((ValueError, struct.error)):
        list(functions_of_go(section(FUNCTIONS, 200)[:kept]))
