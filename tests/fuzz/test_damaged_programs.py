"""Damaged and odd programs: whatever reads them gives a named error, or goes on with what is left.

Changes go where they hurt: into the headers, and into sections that are read, of programs that compilers
made.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from perun.collect._calls.binary import Binary
from perun.elf import Damaged, ElfFile
from perun.errors import JobFailed

SOURCE = """\
#include <stdlib.h>
struct list { int count; int *items; };
struct tree { struct tree *left, *right; struct list l; };
__attribute__((noinline)) int total(struct list *list)
{
    int sum = 0;
    for (int i = 0; i < list->count; i++)
        sum += list->items[i];
    return sum;
}
static inline double half(double d) { return d / 2; }
__attribute__((noinline)) int walk(struct tree *t, int n)
{
    return t ? total(&t->l) + walk(t->left, n - 1) + (int)half(n) : 0;
}
int main(int argc, char **argv)
{
    int v[3] = {1, 2, argc};
    struct list l = {3, v};
    struct tree t = {0, 0, l};
    return walk(&t, argc) != 3 + argc;
}
"""
BUILDS = (("-O1",), ("-O2", "-gdwarf-4"), ("-gz",), ("-O1", "--coverage"), ("-Wl,-s", "-O1"))
READERS = ("elf", "elf-functions", "elf-call-graph", "elf-symbols", "elf-counters", "elf-lines")
FEW, MANY = 60, 3000
HARMFUL = (0, 1, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 31, (1 << 63) - 1, (1 << 64) - 1)
HEADER = 64


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The program as several builds."""
    import subprocess

    folder = tmp_path_factory.mktemp("built")
    (folder / "p.c").write_text(SOURCE)
    for number, options in enumerate(BUILDS):
        command = ["gcc", "-g", *options, "-o", f"p{number}", "p.c"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return [(folder / f"p{number}").read_bytes() for number in range(len(BUILDS))]


def mutant(data: bytes, choose: random.Random) -> bytes:
    """A program with one to four changes in what readers look at."""
    import io

    found = bytearray(data)
    elf = ElfFile(io.BytesIO(data))
    table = struct.unpack_from("<Q", data, 0x28)[0]
    read_sections = [one for one in elf.sections if one.size and one.type != 8 and not one.flags & 4]
    for _ in range(choose.randint(1, 4)):
        place = choose.choice(
            ("header", "segments", "sections", "content", "content", "content", "cut", "zeros")
        )
        if place == "cut":
            del found[
                choose.choice((choose.randrange(len(found)), table, table + 64 * choose.randrange(8))) :
            ]
            continue
        part = choose.choice(read_sections)
        start, size = {
            "header": (0x10, HEADER - 0x10),
            "segments": (HEADER, 56 * len(elf.segments)),
            "sections": (table, 64 * len(elf.sections)),
        }.get(place, (part.offset, part.size))
        width = choose.choice((1, 2, 4, 8))
        at = start + choose.randrange(max(1, size - width)) // width * width
        if place == "zeros":
            value = bytes(min(size, 64))
        elif choose.random() < 0.5:
            value = (choose.choice(HARMFUL) & (1 << 8 * width) - 1).to_bytes(width, "little")
        else:
            value = choose.randbytes(width)
        found[at : at + len(value)] = value
    return bytes(found)


CHOSEN = (3, 8, 11, 14, 20, 26, 33, 37, 41, 45, 52, 59)


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
    with pytest.raises(JobFailed, match="program is damaged, so that its functions cannot be read"):
        _ = Binary(path).functions
    with path.open("rb") as file, pytest.raises(Damaged):
        _ = ElfFile(file).sections
