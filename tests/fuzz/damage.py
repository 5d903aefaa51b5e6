"""Makes damaged programs: changes go into the headers, and into sections that are read, of programs that
compilers made."""

import io
import random
import struct
import subprocess
from pathlib import Path

from perun.native.elf import ElfFile

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
HARMFUL = (0, 1, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 31, (1 << 63) - 1, (1 << 64) - 1)
HEADER = 64


def build(folder: Path) -> list[bytes]:
    """The program as several builds."""
    (folder / "p.c").write_text(SOURCE)
    for number, options in enumerate(BUILDS):
        command = ["gcc", "-g", *options, "-o", f"p{number}", "p.c"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return [(folder / f"p{number}").read_bytes() for number in range(len(BUILDS))]


def mutant(data: bytes, choose: random.Random) -> bytes:
    """A program with one to four changes in what readers look at."""
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
