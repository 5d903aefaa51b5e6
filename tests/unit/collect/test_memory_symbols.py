"""Functions and lines of addresses, by both symbolisers, and what is kept of their answers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from perun.native.elf import read_elf
from perun.native.symboliser import NOTHING, TOOLS, SymbolFrame, Symboliser, find_tool

SOURCE = """\
#include <stdlib.h>
static inline __attribute__((always_inline)) void *inlined(int size) {
    return malloc(size);
}
namespace space { void *outer(int size) {
    return inlined(size);
} }
int main(int count, char **) {
    free(space::outer(count));
    return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("symbols")
    (folder / "prog.cpp").write_text(SOURCE)
    for name, options in (("full", ["-g"]), ("plain", []), ("stripped", ["-s"]), ("static", ["-static"])):
        command = ["g++", "-O1", "-fno-inline", "-Wl,--build-id", *options, "-o", name, "prog.cpp"]
        subprocess.run(command, cwd=folder, check=True)
    return folder


@pytest.fixture(params=TOOLS)
def tool(request: pytest.FixtureRequest) -> str:
    found = shutil.which(request.param)
    if not found:
        pytest.skip(f"{request.param} is not installed")
    return found


def address_of(path: Path, function: str) -> int:
    listing = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True).stdout
    return next(int(line.split()[0], 16) for line in listing.splitlines() if line.endswith(function))


def call_of_malloc(path: Path) -> int:
    """The last byte of the call, which is what a call stack tells of it."""
    listing = subprocess.run(["objdump", "-d", path], capture_output=True, text=True, check=True).stdout
    lines = listing.splitlines()
    call = next(place for place, line in enumerate(lines) if "malloc" in line and "call" in line)
    return int(lines[call + 1].split(":")[0], 16) - 1


def test_inlined_frames_are_kept(folder: Path, tool: str) -> None:
    path = str(folder / "full")
    address = call_of_malloc(folder / "full")
    source = str(folder / "prog.cpp")
    found = Symboliser(tool).frames(path, read_elf(path), [address, 1])
    assert found[1] == NOTHING
    inner, outer = found[address]
    assert (inner.function.partition("(")[0], inner.source, inner.line) == ("inlined", source, 3)
    assert outer == SymbolFrame("space::outer(int)", source, 6)


def test_without_debug_information(folder: Path, tool: str) -> None:
    address = address_of(folder / "plain", "space::outer(int)") + 1
    path = str(folder / "plain")
    assert Symboliser(tool).frames(path, read_elf(path), [address])[address] == (
        SymbolFrame("space::outer(int)", "", 0),
    )
    path = str(folder / "stripped")
    assert Symboliser(tool).frames(path, read_elf(path), [address])[address] == NOTHING


LINKED = """\
#include <stdlib.h>
struct list { long size; };
void *outer(struct list *list);
static inline void *inner(long size) {
    return malloc(size * 8);
}
__attribute__((noinline)) void *outer(struct list *list) {
    void *made = inner(list->size + 3); __asm__ volatile("" ::: "memory"); return made;
}
int main(int count, char **arguments) {
    struct list list = {count}; (void)arguments; free(outer(&list)); return 0;
}
"""


@pytest.mark.parametrize("option", ["-flto", "-gsplit-dwarf"])
def test_sources_that_addr2line_does_not_find(tmp_path: Path, option: str) -> None:
    """The debug information is in another file, or is that of all sources together."""
    tools = [shutil.which(name) for name in TOOLS]
    if not all(tools):
        pytest.skip(f"not both of {' and '.join(TOOLS)} are installed")
    (tmp_path / "one.c").write_text(LINKED)
    command = ["gcc", "-g", "-O2", "-Wl,--build-id", option, "-o", "program", "one.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    path, address = str(tmp_path / "program"), call_of_malloc(tmp_path / "program")
    source, cache = str(tmp_path / "one.c"), tmp_path / "cache"
    expected = (SymbolFrame("inner", source, 5), SymbolFrame("outer", source, 8))
    for _ in range(2):  # the second answer is from the cache
        found = Symboliser(str(tools[0]), cache, str(tools[1])).frames(path, read_elf(path), [address])
        assert found[address] == expected
    for alone in tools:  # neither tells a source that does not exist
        frames = Symboliser(str(alone)).frames(path, read_elf(path), [address])[address]
        assert {frame.source for frame in frames} <= {source, ""}


def test_answers_are_kept(folder: Path, tool: str, tmp_path: Path) -> None:
    path = str(folder / "full")
    elf = read_elf(path)
    assert elf
    addresses = [call_of_malloc(folder / "full"), address_of(folder / "full", "main")]
    cache = tmp_path / "cache"
    first = Symboliser(tool, cache).frames(path, elf, addresses[:1])
    (kept,) = cache.iterdir()
    assert elf.build_id in kept.name
    # Where everything is known nobody is asked, and nothing is written.
    silent = tmp_path / os.path.basename(tool)
    silent.write_text("#!/bin/sh\nexit 1\n")
    silent.chmod(0o755)
    assert Symboliser(str(silent), cache).frames(path, elf, addresses[:1]) == first
    before = kept.read_bytes()
    assert Symboliser(str(silent), cache).frames(path, elf, addresses)[addresses[1]] == NOTHING
    assert kept.read_bytes() == before
    assert Symboliser(tool, cache).frames(path, elf, addresses)[addresses[1]][0].function == "main"
    kept.write_bytes(b"[[], [")  # damaged: as good as absent
    assert Symboliser(tool, cache).frames(path, elf, addresses[:1]) == first
    kept.write_bytes(b'[["f"], [], [[1, [[0, 7, 1]]]]]')
    assert Symboliser(tool, cache).frames(path, elf, addresses[:1]) == first


def test_a_cache_that_cannot_be_written(folder: Path, tool: str, tmp_path: Path) -> None:
    path = str(folder / "full")
    (tmp_path / "file").touch()
    found = Symboliser(tool, tmp_path / "file").frames(
        path, read_elf(path), [call_of_malloc(folder / "full")]
    )
    assert all(found.values())


def test_old_answers_are_dropped(folder: Path, tool: str, tmp_path: Path) -> None:
    for number in range(305):
        (tmp_path / f"{number}.json").touch()
        os.utime(tmp_path / f"{number}.json", (number, number))
    path = str(folder / "full")
    Symboliser(tool, tmp_path).frames(path, read_elf(path), [call_of_malloc(folder / "full")])
    names = {path.name for path in tmp_path.iterdir()}
    assert len(names) == 300 and "5.json" not in names and "6.json" in names


def test_a_symboliser_that_is_not_there(folder: Path, tmp_path: Path) -> None:
    path = str(folder / "full")
    for tool in ("", str(tmp_path / "addr2line")):
        assert Symboliser(tool, tmp_path / "cache").frames(path, read_elf(path), [1, 2]) == {
            1: NOTHING,
            2: NOTHING,
        }
    assert find_tool({"PATH": str(tmp_path)}) == ""
    assert os.path.basename(find_tool({"PATH": os.environ["PATH"]})) in TOOLS


def test_both_agree(folder: Path) -> None:
    path = str(folder / "full")
    tools = [found for found in map(shutil.which, TOOLS) if found]
    address = call_of_malloc(folder / "full")
    answers = [Symboliser(tool).frames(path, read_elf(path), [address])[address][-1] for tool in tools]
    assert len(set(answers)) == 1


@pytest.mark.slow
def test_ten_thousand_addresses(tool: str) -> None:
    path = "/usr/lib/x86_64-linux-gnu/libc.so.6"
    elf = read_elf(path)
    if elf is None:
        pytest.skip("no library to look at")
    text = max(elf.segments, key=lambda segment: segment.size)
    addresses = range(text.address, text.address + text.size, max(1, text.size // 10_000))
    found = Symboliser(tool).frames(path, elf, addresses)
    assert sum(map(bool, found.values())) > 1000


def test_elf(folder: Path, tmp_path: Path) -> None:
    full, plain, static = (read_elf(str(folder / name)) for name in ("full", "plain", "static"))
    assert full and plain and static
    assert full.dynamic and full.has_lines and full.bits == 64 and len(full.build_id) == 40
    assert plain.dynamic and not plain.has_lines and not static.dynamic
    segment = full.segments[1]
    assert full.address_of(segment.offset + 3) == segment.address + 3
    assert full.entry == address_of(folder / "full", " _start")
    (tmp_path / "script").write_text("#!/bin/sh\n")
    assert read_elf(str(tmp_path / "script")) is None and read_elf(str(tmp_path)) is None
    assert read_elf(str(tmp_path / "absent")) is None


def test_damaged_elf(folder: Path, tmp_path: Path) -> None:
    data = (folder / "full").read_bytes()
    for size in (0, 4, 20, 63, 64, 100, 400, 2000):
        (tmp_path / "cut").write_bytes(data[:size])
        read_elf(str(tmp_path / "cut"))
    for place in range(16, 600):
        broken = bytearray(data[:4096])
        broken[place] ^= 0xFF
        (tmp_path / "broken").write_bytes(broken)
        read_elf(str(tmp_path / "broken"))
