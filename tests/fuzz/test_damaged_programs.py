"""Damaged and odd programs: whatever reads them gives a named error, or goes on with what is left."""

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import build, mutant

from perun.core.errors import JobFailed
from perun.native.binary import Binary
from perun.native.elf import Damaged, ElfFile

READERS = ("elf", "elf-functions", "elf-call-graph", "elf-symbols", "elf-counters", "elf-lines")
FEW, MANY = 60, 3000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The program as several builds."""
    return build(tmp_path_factory.mktemp("built"))


def check(built: list[bytes], read: Callable[[str, bytes], object], seed: int, count: int) -> None:
    for number in range(seed, seed + count):
        data = mutant(built[number % len(built)], random.Random(number))
        for name in READERS:
            try:
                read(name, data)
            except Exception as problem:
                raise AssertionError(f"mutant {number}, {name}") from problem


def test_what_is_whole_is_read(built: list[bytes], read: Callable[[str, bytes], object]) -> None:
    for data in built:
        for name in READERS:
            assert not isinstance(read(name, data), Exception), name


def test_some_damaged_programs(built: list[bytes], read: Callable[[str, bytes], object]) -> None:
    check(built, read, 0, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, MANY, 500))
def test_many_damaged_programs(built: list[bytes], read: Callable[[str, bytes], object], seed: int) -> None:
    check(built, read, FEW + seed, 500)


def test_a_damaged_unit_leaves_functions_by_their_symbols(built: list[bytes], tmp_path: Path) -> None:
    data = bytearray(built[0])
    path = tmp_path / "program"
    path.write_bytes(data)
    with path.open("rb") as file:
        unit = ElfFile(file).section(".debug_info")
        assert unit is not None
    data[unit.offset + 4 : unit.offset + 6] = b"\xff\xff"  # its version
    path.write_bytes(data)
    with Binary(path) as binary:
        assert {"main", "walk", "total"} <= {one.name for one in binary.functions}
        assert [note for note in binary.notes if "debug information of program is damaged" in note]


def test_a_cut_table_of_sections_is_named(built: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "program"
    (table,) = struct.unpack_from("<Q", built[0], 0x28)
    path.write_bytes(built[0][: table + 100])
    damaged = pytest.raises(JobFailed, match="program is damaged, so that its functions cannot be read")
    with damaged, Binary(path) as binary:
        _ = binary.functions
    with path.open("rb") as file, pytest.raises(Damaged):
        _ = ElfFile(file).sections
