"""Names of functions of Rust and C++: how they are shown, which are the program's own, which a user means."""

import contextlib
import http.server
import lzma
import os
import shutil
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from perun.native import symbols as debug_files
from perun.native import symbols as symbol_table
from perun.native.binary import Binary
from perun.native.elf import DYNAMIC_SYMBOLS, read_elf
from perun.native.function_names import demangled, is_own, is_rust, match, plain_name
from perun.native.image import functions_of_go
from perun.native.symboliser import NOTHING, Symboliser, find_tool
from perun.native.symbols import URLS, Debuginfod, SymbolTable, debug_packages, with_debug_file


class Named(NamedTuple):
    symbol: str
    name: str


LEGACY = {
    "_ZN4list4List4push17h9f3b7184a47ffaa0E": "list::List::push",
    "_ZN48_$LT$list..List$u20$as$u20$list..shape..Area$GT$4area17h0123456789abcdefE": (
        "<list::List as list::shape::Area>::area"
    ),
    "_ZN5alloc7raw_vec19RawVec$LT$T$C$A$GT$8grow_one17h76111196bd863648E": (
        "alloc::raw_vec::RawVec<T,A>::grow_one"
    ),
    "_ZN9hashbrown3raw21RawTable$LT$T$C$A$GT$14reserve_rehash17hb7e2571a5e1191bbE.llvm.1036713079": (
        "hashbrown::raw::RawTable<T,A>::reserve_rehash"
    ),
}
OWN_WAY = {
    "_RNvCs6GmmlP4bgsG_1r4fill": "r::fill",
    "_RNvMCs6GmmlP4bgsG_1rNtB2_3Bag3add": "r::Bag::add",
    "_RNvXs_Cs6GmmlP4bgsG_1rNtB4_2SqNtNtB4_5inner4Area4area": "<r::Sq as r::inner::Area>::area",
}


@pytest.mark.parametrize(("symbol", "name"), LEGACY.items())
def test_names_of_rust_have_no_hash(symbol: str, name: str) -> None:
    assert demangled([symbol]) == {symbol: name} and is_rust(symbol)


@pytest.mark.parametrize(("symbol", "name"), OWN_WAY.items())
def test_names_in_the_own_way_of_rust(symbol: str, name: str) -> None:
    if not shutil.which("c++filt"):
        pytest.skip("c++filt is not installed (binutils)")
    assert demangled([symbol]) == {symbol: name} and is_rust(symbol)


def test_names_of_c_and_cpp_stay() -> None:
    symbols = ["list_push", "_ZN4list4pushEi", "_Reset", "_ZN2ns17hash_of_somethingEv"]
    assert demangled(symbols) == dict(
        zip(symbols, ["list_push", "list::push(int)", "_Reset", "ns::hash_of_something()"], strict=True)
    )
    assert not any(map(is_rust, symbols))


@pytest.mark.parametrize(("name", "own"), [
    ("list::List::push", True),
    ("<list::List as core::fmt::Display>::fmt", True),
    ("<u8 as list::Encoded>::encode", True),
    ("<&mut list::List as core::iter::Iterator>::next", True),
    ("alloc::raw_vec::RawVec<T,A>::grow_one", False),
    ("core::ptr::drop_in_place<list::List>", False),
    ("<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop", False),
    ("<u8 as core::fmt::Display>::fmt", False),
    ("<str>::trim_start_matches", False),
    ("<&[u8] as std::io::Read>::read", False),
    ("stdlike::push", True),
    ("hashbrown::raw::RawTable<T,A>::reserve_rehash", False),
])  # fmt: skip
def test_which_functions_of_rust_are_the_programs_own(name: str, own: bool) -> None:
    assert is_own("_ZN1a1b17h0123456789abcdefE", name) == own


def test_what_a_name_means() -> None:
    functions = [Named(symbol, name) for symbol, name in demangled(LEGACY).items()]
    for wanted in ("push", "List::push", "list::List::push"):
        assert [one.name for one in match(functions, wanted)] == ["list::List::push"]
    assert [one.name for one in match(functions, "area")] == ["<list::List as list::shape::Area>::area"]
    assert [one.name for one in match(functions, "RawTable::reserve_rehash")] == [
        "hashbrown::raw::RawTable<T,A>::reserve_rehash"
    ]
    assert not match(functions, "ist::push")
    assert plain_name("r::main::{closure#0}") == "r::main::{closure#0}"


# -- The list of functions that a stripped program of Go still has -----------------------------------


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
        ("runtime.main", TEXT, 64), ("main.main", TEXT + 64, 16), ("main.(*é).String", TEXT + 80, 120)
    ]  # fmt: skip


def test_another_layout_has_none() -> None:
    assert not list(functions_of_go(section(FUNCTIONS, 200, 0xFFFFFFFB)))
    assert not list(functions_of_go(b"\xf1\xff\xff\xff"))


@pytest.mark.parametrize("kept", [HEADER, HEADER + 60, -20])
def test_a_damaged_one_is_named(kept: int) -> None:
    with pytest.raises((ValueError, struct.error)):
        list(functions_of_go(section(FUNCTIONS, 200)[:kept]))


# -- Names of functions in stripped files: never those of other functions, and from wherever they are kept


SOURCE = """\
#include <stdlib.h>
__attribute__((noinline)) void tiny(void) { __asm__ volatile(""); }
static __attribute__((noinline)) void *hidden(int size) { return malloc(size + 1); }
__attribute__((noinline)) void *shown(int size) { void *p = hidden(size); __asm__ volatile(""); return p; }
__asm__(".text\\n.globl bare\\nbare: nop\\nnop\\nret\\n");
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`whole.so` with all that a compiler writes, `stripped.so` with exported functions only."""
    if not find_tool(os.environ):
        pytest.skip("neither addr2line nor llvm-symbolizer is installed")
    folder = tmp_path_factory.mktemp("names")
    (folder / "lib.c").write_text(SOURCE)
    run(folder, "gcc -g -O1 -fPIC -shared -Wl,--build-id -o whole.so lib.c")
    run(folder, "objcopy --only-keep-debug whole.so lib.debug")
    run(folder, "objcopy --strip-all whole.so stripped.so")
    return folder


@pytest.fixture
def folder(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the stripped file alone; no debug information is on the machine."""
    monkeypatch.setattr(debug_files, "DEBUG_FOLDER", str(tmp_path / "debug"))
    shutil.copy(built / "stripped.so", tmp_path)
    return tmp_path


def run(folder: Path, command: str) -> None:
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)


def addresses(built: Path) -> dict[str, int]:
    """The address of each function of the source."""
    listing = subprocess.run(["nm", built / "whole.so"], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in listing.splitlines()]
    found = {line[2]: int(line[0], 16) for line in lines if len(line) == 3}
    return {name: found[name] for name in ("tiny", "hidden", "shown", "bare")}


def names(path: Path, built: Path, debug_file: str = "") -> dict[str, str]:
    """What the memory collector calls each function; empty for no name."""
    elf = with_debug_file(read_elf(str(path)), str(path))
    assert elf
    if debug_file:
        elf = elf._replace(debug_file=debug_file)
    wanted = addresses(built)
    found = Symboliser(find_tool(os.environ)).frames(str(path), elf, wanted.values())
    return {
        name: found[address][-1].function if found[address] != NOTHING else ""
        for name, address in wanted.items()
    }


WHOLE = {"tiny": "tiny", "hidden": "hidden", "shown": "shown", "bare": "bare"}


def test_nothing_has_the_name_of_its_neighbour(folder: Path, built: Path) -> None:
    assert names(built / "whole.so", built) == WHOLE
    # Without a size nobody knows where `bare` ends once its neighbours are gone.
    assert names(folder / "stripped.so", built) == {**WHOLE, "hidden": "", "bare": ""}
    with Binary(folder / "stripped.so") as binary:
        assert {one.name for one in binary.functions} == {"tiny", "shown"}


def test_a_small_symbol_table_in_the_file(folder: Path, built: Path) -> None:
    run(built, f"objcopy --strip-debug --remove-section=.comment whole.so {folder}/small")
    (folder / "small.xz").write_bytes(lzma.compress((folder / "small").read_bytes()))
    run(folder, "objcopy --add-section .gnu_debugdata=small.xz stripped.so mini.so")
    assert names(folder / "mini.so", built) == WHOLE
    elf = read_elf(str(folder / "mini.so"))
    assert elf and elf.has_symbols and not elf.has_lines
    with Binary(folder / "mini.so") as binary:
        assert {"tiny", "shown", "hidden"} <= {one.name for one in binary.functions}


@pytest.mark.parametrize("damage", ["cut", "large", "no xz"])
def test_a_small_symbol_table_that_is_not_to_be_used(folder, built: Path, damage: str, monkeypatch) -> None:
    data = lzma.compress((built / "whole.so").read_bytes())
    if damage == "large":
        monkeypatch.setattr(symbol_table, "MAX_DEBUGDATA", 1000)
    (folder / "small.xz").write_bytes({"cut": data[:200], "large": data, "no xz": b"\x7fELF"}[damage])
    run(folder, "objcopy --add-section .gnu_debugdata=small.xz stripped.so mini.so")
    assert names(folder / "mini.so", built) == {**WHOLE, "hidden": "", "bare": ""}


def test_a_file_that_claims_many_tables(folder: Path) -> None:
    data = bytearray((folder / "stripped.so").read_bytes())
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<2H", data, 0x3A)
    headers = [data[start + number * size :][:size] for number in range(count)]
    (symbols,) = [one for one in headers if struct.unpack_from("<I", one, 4) == (DYNAMIC_SYMBOLS,)]
    struct.pack_into("<Q", data, 0x28, len(data))
    struct.pack_into("<H", data, 0x3C, count + 100)
    (folder / "many.so").write_bytes(data + b"".join(headers) + symbols * 100)
    assert len(SymbolTable([str(folder / "many.so")])) == len(SymbolTable([str(folder / "stripped.so")])) > 0


@pytest.mark.parametrize("place", ["beside", ".debug", "below the folder of the system", "by build-id"])
def test_debug_information_in_a_file_of_its_own(folder: Path, built: Path, place: str) -> None:
    elf = read_elf(str(built / "whole.so"))
    assert elf
    debug = {
        "beside": folder / "lib.debug",
        ".debug": folder / ".debug" / "lib.debug",
        "below the folder of the system": Path(f"{folder}/debug{folder}/lib.debug"),
        "by build-id": folder / "debug/.build-id" / elf.build_id[:2] / f"{elf.build_id[2:]}.debug",
    }[place]
    debug.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(built / "lib.debug", debug)
    if place != "by build-id":
        run(built, f"objcopy --add-gnu-debuglink=lib.debug {folder}/stripped.so")
    found = with_debug_file(read_elf(str(folder / "stripped.so")), str(folder / "stripped.so"))
    assert found and Path(found.debug_file) == debug
    assert names(folder / "stripped.so", built) == WHOLE
    frames = Symboliser(find_tool(os.environ)).frames(
        str(folder / "stripped.so"), found, [addresses(built)["hidden"]]
    )
    ((frame,),) = frames.values()
    assert frame.source.endswith("lib.c") and frame.line == 3
    with Binary(folder / "stripped.so") as binary:
        assert {"tiny", "shown", "hidden"} <= {one.name for one in binary.functions}


def test_debug_information_of_another_build_does_not_count(folder: Path, built: Path) -> None:
    (folder / "lib.c").write_text(SOURCE.replace("size + 1", "size + 2"))
    run(folder, "gcc -g -O1 -fPIC -shared -Wl,--build-id -o other.so lib.c")
    run(folder, "objcopy --only-keep-debug other.so lib.debug")
    run(built, f"objcopy --add-gnu-debuglink=lib.debug {folder}/stripped.so")
    found = with_debug_file(read_elf(str(folder / "stripped.so")), str(folder / "stripped.so"))
    assert found and found.debug_file == ""
    assert names(folder / "stripped.so", built)["hidden"] == ""
    (folder / "lib.debug").write_bytes(b"\x7fELF damaged")
    found = with_debug_file(read_elf(str(folder / "stripped.so")), str(folder / "stripped.so"))
    assert found and found.debug_file == ""


# -- debuginfod --------------------------------------------------------------------------------------


class Server(http.server.ThreadingHTTPServer):
    files: dict[str, bytes]
    asked: list[str]
    slow: threading.Event | None = None


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        found = self.server.files.get(self.path)
        self.send_response(404 if found is None else 200)
        self.end_headers()
        if self.server.slow:
            with contextlib.suppress(OSError):  # nobody listens any more
                while not self.server.slow.wait(0.02):
                    self.wfile.write(b"x")
        self.wfile.write(found or b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(built: Path) -> Iterator[Server]:
    elf = read_elf(str(built / "whole.so"))
    assert elf
    made = Server(("127.0.0.1", 0), Handler)
    made.asked = []
    made.files = {f"/buildid/{elf.build_id}/debuginfo": (built / "lib.debug").read_bytes()}
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def build_id(path: Path) -> str:
    elf = read_elf(str(path))
    assert elf
    return elf.build_id


def test_a_server_has_the_debug_information(folder: Path, built: Path, server: Server) -> None:
    environ = {URLS: f"http://127.0.0.1:{server.server_port}/"}
    wanted = build_id(folder / "stripped.so")
    found = Debuginfod(environ, folder / "cache").debug_file(wanted)
    assert names(folder / "stripped.so", built, found) == WHOLE
    # The second time it is in the cache; a server is asked once for what it does not have.
    assert Debuginfod(environ, folder / "cache").debug_file(wanted) == found
    assert len(server.asked) == 1
    asking = Debuginfod(environ, folder / "cache")
    assert asking.debug_file("ab" * 20) == "" and asking.notes == []
    assert len(server.asked) == 2 and asking.debug_file("../../etc/passwd") == "" and len(server.asked) == 2


def test_nobody_is_asked_unless_the_user_names_a_server(folder: Path, server: Server) -> None:
    wanted = build_id(folder / "stripped.so")
    assert Debuginfod({}, folder / "cache").debug_file(wanted) == ""
    assert Debuginfod({URLS: f"http://127.0.0.1:{server.server_port}"}, None).debug_file(wanted) == ""
    assert Debuginfod({URLS: "file:///etc ftp://127.0.0.1"}, folder / "cache").debug_file(wanted) == ""
    assert server.asked == []


def test_a_server_that_lies_or_is_not_there(folder: Path, built: Path, server: Server) -> None:
    wanted = build_id(folder / "stripped.so")
    (path,) = server.files
    server.files[path] = Path(shutil.which("true") or "/bin/true").read_bytes()
    lying = Debuginfod({URLS: f"http://127.0.0.1:{server.server_port}"}, folder / "cache")
    assert lying.debug_file(wanted) == ""
    assert "is not the debug information of" in lying.notes[0]
    assert list((folder / "cache").iterdir()) == []
    absent = Debuginfod({URLS: "http://127.0.0.1:1/"}, folder / "cache")
    assert absent.debug_file(wanted) == "" and absent.debug_file("ab" * 20) == ""
    (note,) = absent.notes
    assert "no debug information came from http://127.0.0.1:1 (" in note and "unset DEBUGINFOD_URLS" in note


def test_a_file_that_is_too_large(folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perun.native.symbols.MAX_SIZE", 100)
    asking = Debuginfod({URLS: f"http://127.0.0.1:{server.server_port}"}, folder / "cache")
    assert asking.debug_file(build_id(folder / "stripped.so")) == "" and "too large" in asking.notes[0]
    assert list((folder / "cache").iterdir()) == []


def test_a_server_that_sends_a_byte_now_and_then(folder: Path, server: Server, monkeypatch) -> None:
    monkeypatch.setattr("perun.native.symbols._WHOLE", 0.2)
    server.slow = threading.Event()
    # Ends the answer of the server, which is wrong, where nobody gives up before.
    timer = threading.Timer(60, server.slow.set)
    timer.start()
    asking = Debuginfod({URLS: f"http://127.0.0.1:{server.server_port}"}, folder / "cache")
    assert asking.debug_file(build_id(folder / "stripped.so")) == ""
    timer.cancel()
    server.slow.set()
    assert "takes too long" in asking.notes[0]


def test_the_cache_keeps_what_this_run_was_given(folder: Path, built: Path, server, monkeypatch) -> None:
    monkeypatch.setattr("perun.native.symbols.CACHED_FILES", 1)
    cache, wanted = folder / "cache", build_id(folder / "stripped.so")
    cache.mkdir()
    (cache / "old.debug").touch()
    (cache / "gone.debug").symlink_to("nowhere")  # as one that another process removes meanwhile
    asking = Debuginfod({URLS: f"http://127.0.0.1:{server.server_port}"}, cache)
    found = asking.debug_file(wanted)
    os.utime(found, (0, 0))
    shutil.copy(built / "lib.debug", cache / "new.debug")
    asking._prune()
    assert os.path.exists(found)
    Debuginfod({URLS: f"http://127.0.0.1:{server.server_port}"}, cache)._prune()
    assert not os.path.exists(found) and not (cache / "old.debug").exists()


# -- tables, packages --------------------------------------------------------------------------------


def test_every_address_of_every_function(built: Path) -> None:
    """The table agrees with what `nm` prints: start and size of each function, and nothing between them."""
    table = SymbolTable([str(built / "stripped.so")])
    command = ["nm", "-D", "-S", "--defined-only", built / "stripped.so"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sized = [line.split() for line in listing.splitlines() if len(line.split()) == 4]
    assert len(sized) == 2
    covered = set()
    for start, size, _, name in sized:
        for address in range(int(start, 16), int(start, 16) + int(size, 16)):
            assert table.at(address) == (name,)
            covered.add(address)
    assert all(table.at(address) == () for address in range(0x2000) if address not in covered)
    assert SymbolTable([]).at(1) == SymbolTable([str(built / "lib.c"), str(built / "no")]).at(1) == ()


def test_a_damaged_file_has_no_names_or_some(folder: Path) -> None:
    data = (folder / "stripped.so").read_bytes()
    (start,) = struct.unpack_from("<Q", data, 0x28)
    path = folder / "damaged.so"
    for place in [*range(0x28, 0x40), *range(start, len(data), 19)]:
        for value in (0, 0x7F, 0xFF):
            path.write_bytes(data[:place] + bytes([value]) + data[place + 1 :])
            assert len(SymbolTable([str(path)]).at(0x1110)) <= 2
    for size in (0, 5, 63, 64, start, len(data) - 1):
        path.write_bytes(data[:size])
        assert SymbolTable([str(path)]).at(0x1110) == ()


def test_the_package_with_the_names(tmp_path: Path) -> None:
    if not shutil.which("dpkg"):
        pytest.skip("dpkg is not installed")
    path = shutil.which("dpkg") or ""
    assert debug_packages([path], os.environ) == ["dpkg-dbgsym"]
    assert debug_packages([str(tmp_path / "mine")], os.environ) == []
    assert debug_packages([path], {"PATH": str(tmp_path)}) == []
