"""Call graphs of real programs against what their compiler, other disassemblers and a run say."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from callgrind_calls import calls_within
from compiling import CompilerCache
from perun.core.errors import JobFailed
from perun.native.binary import Binary
from perun.native.callgraph.decode import Decoder
from perun.native.callgraph.extract import extract
from perun.native.callgraph.graph import CallGraph
from perun.native.callgraph.pieces import Pieces
from perun.native.image import read_image, static_graph

PROGRAMS = Path(__file__).parent / "programs"
SOURCE = PROGRAMS / "callgraph.c"
OPTIONS = {
    "plain": ("-O2",),
    "unoptimized": ("-O0",),
    "small": ("-Os", "-fcf-protection=none"),
    "bound at once": ("-O2", "-fcf-protection=full", "-Wl,-z,now"),
    "second table": ("-O2", "-fcf-protection=full", "-Wl,-z,lazy,-z,ibtplt"),
    "no table": ("-O2", "-fno-plt"),
    "fixed place": ("-O2", "-no-pie"),
    "no tables of jumps": ("-O2", "-fno-jump-tables"),
}
STATIC = {"static": ("-O2", "-static"), "static, movable": ("-O2", "-static-pie")}
_EDGE = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')


@pytest.fixture(scope="session")
def expected(compiled_once: CompilerCache, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., set]:
    """The calls of a source that GCC tells of: pairs of names, those through pointers without a callee."""
    folder = tmp_path_factory.mktemp("callgraph-info")

    def told(*options: str) -> set[tuple[str, str]]:
        made = folder / "program"
        subprocess.run(
            ["gcc", *options, "-fcallgraph-info", "-c", SOURCE, "-o", made, "-dumpdir", f"{folder}/"],
            check=True,
            capture_output=True,
        )
        [file] = folder.glob("*.ci")
        text = file.read_text(encoding="utf-8")
        file.unlink()
        plain = {"__indirect_call": ""}
        return {
            (caller.rpartition(":")[2], plain.get(callee, callee.rpartition(":")[2]))
            for caller, callee in _EDGE.findall(text)
        }

    return told


def calls_of(graph: CallGraph, names: set[str]) -> set[tuple[str, str]]:
    return {(call.caller, call.callee) for call in graph.calls if call.caller in names}


def plain(calls: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without the names that the C library has of a function besides its own."""
    others = {"_IO_puts": "puts", "_IO_printf": "printf", "_IO_fprintf": "fprintf", "__strtol": "strtol",
              "__isoc23_strtol": "strtol", "resolved": "picked"}  # fmt: skip
    return {(caller, others.get(callee, callee)) for caller, callee in calls}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(options, id=name, marks=() if name in ("plain", "fixed place") else pytest.mark.slow)
        for name, options in {**OPTIONS, **STATIC}.items()
    ],
)
def test_calls_are_those_that_the_compiler_tells(
    options: tuple[str, ...], expected: Callable[..., set], compiled_once: CompilerCache
) -> None:
    wanted = expected(*(one for one in options if not one.startswith(("-Wl", "-static"))))
    graph = static_graph(compiled_once("gcc", *options, SOURCE))
    assert graph.entry == "main"
    callers = {caller for caller, _ in wanted}
    assert callers >= {"main", "chosen", "tail", "unlikely", "recursive", "even", "odd", "never"}
    assert plain(calls_of(graph, callers)) == plain(wanted)
    kinds = {(call.caller, call.callee): call.kind for call in graph.calls}
    assert kinds["main", ""] == "indirect"
    assert kinds["tail", "helper"] == ("direct" if "-O0" in options else "tail")
    assert {one.name for one in graph.functions.values() if one.address_taken} >= {"tail", "helper", "order"}


def test_a_stripped_program_has_the_same_graph(compiled_once: CompilerCache, tmp_path: Path) -> None:
    program = compiled_once("gcc", "-O2", SOURCE)
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    whole, bare = static_graph(program), static_graph(stripped)
    assert bare.entry == "main"
    names = {one.address: one.name for one in whole.functions.values()}
    found = {
        (names[bare.functions[call.caller].address], call.callee, call.kind)
        for call in bare.calls
    }
    shown = {
        (call.caller, f"sub_{whole.functions[call.callee].address:x}" if call.callee in whole.functions else
         call.callee, call.kind)
        for call in whole.calls
    }
    main = f"sub_{whole.functions['main'].address:x}"
    assert {one if one[1] != "main" else (one[0], main, one[2]) for one in found} == shown
    same = {one.address: one.fingerprints.soft for one in bare.functions.values()}
    assert same == {one.address: one.fingerprints.soft for one in whole.functions.values()}


def test_a_cold_piece_belongs_to_its_function(compiled_once: CompilerCache) -> None:
    graph = static_graph(compiled_once("gcc", "-O2", SOURCE))
    assert not [name for name in graph.functions if "cold" in name]
    assert ("unlikely", "abort") in calls_of(graph, {"unlikely"})
    assert len(graph.functions["unlikely"].blocks) == 3


def test_a_switch_leads_to_all_its_cases(compiled_once: CompilerCache) -> None:
    by_table = static_graph(compiled_once("gcc", "-O2", SOURCE)).functions["chosen"]
    assert max(len(block.successors) for block in by_table.blocks) == 8
    reached, queue = {0}, [0]
    for number in queue:
        for after in by_table.blocks[number].successors:
            if after not in reached:
                reached.add(after)
                queue.append(after)
    assert reached == set(range(len(by_table.blocks)))


def test_functions_of_one_name_are_told_apart(compiled_once: CompilerCache) -> None:
    program = compiled_once("gcc", "-O2", PROGRAMS / "callgraph_main.c", PROGRAMS / "callgraph_same.c")
    graph = static_graph(program)
    assert {"callgraph_main.c:compare", "callgraph_same.c:compare"} <= graph.functions.keys()
    assert graph.callees("second") == ("callgraph_same.c:compare",)
    assert set(graph.callees("main")) == {"callgraph_main.c:compare", "second"}
    with Binary(program) as binary:
        by_address = {one.address: one.name for one in binary.functions}
    own = [one for one in graph.functions.values() if one.address in by_address]
    assert [one.uid for one in own] == [by_address[one.address] for one in own]


@pytest.mark.parametrize(
    ("what", "message"),
    [(b"#!/bin/sh\n", "no 64-bit ELF program"), (b"\x7fELF\x02\x01" + bytes(200), "no 64-bit ELF program")],
)
def test_what_is_no_program_is_refused(what: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(what)
    with pytest.raises(JobFailed, match=message):
        static_graph(file)


def test_a_program_for_another_machine_is_named(compiled_once: CompilerCache, tmp_path: Path) -> None:
    data = bytearray(compiled_once("gcc", "-O2", SOURCE).read_bytes())
    file = tmp_path / "program"
    for number, name in ((183, "arm64"), (243, "RISC-V"), (9999, "another machine (number 9999)")):
        data[18:20] = number.to_bytes(2, "little")
        file.write_bytes(data)
        with pytest.raises(JobFailed, match="only") as problem:
            static_graph(file)
        assert f"{file} is a program for {name}: Perun reads" in problem.value.message


def test_a_damaged_program_is_an_error_and_no_traceback(compiled_once: CompilerCache, tmp_path: Path) -> None:
    data = bytearray(compiled_once("gcc", "-O2", SOURCE).read_bytes())
    file = tmp_path / "damaged"
    for number in range(20):
        changed = bytearray(data)
        for place in range(number * 37 % 512, len(data), 701 + 13 * number):
            changed[place] ^= 0x5A
        file.write_bytes(changed)
        try:
            static_graph(file)
        except JobFailed as problem:
            assert str(file) in problem.message


def missing(program: Path, made: set[tuple[int, int]]) -> list[str]:
    """Of calls by addresses, those that the graph of the program lacks and that go through no pointer."""
    image = read_image(program)
    graph, pieces = extract(image), Pieces(image, Decoder(image))
    names = {one.address: name for name, one in graph.functions.items()}
    known = {(call.caller, call.callee) for call in graph.calls}
    targets = {
        piece.addresses[position]: target
        for piece in pieces.code.values()
        for position, target in piece.targets()
    }
    lacks = []
    for site, target in made:
        caller, callee = (names.get(pieces.function_at(one), "?") for one in (site, target))
        # A stub in between has a function that is chosen when the program starts (ifunc).
        is_direct = pieces.function_at(targets.get(site, -1)) >= 0
        by_pointer = not is_direct and (caller, "") in known
        # A jump to its own beginning is no call.
        if (caller, callee) not in known and not by_pointer and caller != callee:
            lacks.append(f"{site:#x} {caller} -> {target:#x} {callee}")
    return lacks


def called(program: Path, traced: Path, folder: Path, *arguments: str) -> set[tuple[int, int]]:
    """What valgrind sees that instructions of a file call in the same file while a program runs."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed; as root: apt-get install valgrind")
    file = folder / "callgrind.out"
    command = ["valgrind", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={file}"]
    subprocess.run([*command, program, *arguments], check=True, capture_output=True, cwd=folder)
    return calls_within(file, str(traced))


def test_no_call_of_a_run_is_missing(compiled_once: CompilerCache, tmp_path: Path) -> None:
    program = compiled_once("gcc", "-O2", SOURCE)
    made = called(program, program, tmp_path)
    assert len(made) >= 8
    assert missing(program, made) == []


DEBIAN = {
    "sqlite3": ("/usr/bin/sqlite3", "libsqlite3.so.0", [":memory:", "create table t(a, b); insert into t "
                "values (1, 2), (3, 4); select sum(a), group_concat(b) from t group by a order by 1;"], 1000),
    "git": ("/usr/bin/git", "", ["--git-dir", ".", "version", "--build-options"], 30),
    "git init": ("/usr/bin/git", "", ["init", "-q", "made"], 300),
    "python3": ("/usr/bin/python3", "", ["-S", "-c", "import re, json; json.loads(json.dumps([{'a': 1}]))"],
                5000),
}  # fmt: skip
"""Stripped programs of Debian: path, library that is looked at instead, arguments, least number of calls."""


@pytest.mark.slow
@pytest.mark.parametrize("name", DEBIAN)
def test_no_call_of_a_run_of_a_stripped_program_is_missing(name: str, tmp_path: Path) -> None:
    path, library, arguments, least = DEBIAN[name]
    program = installed(path)
    made = called(program, library_of(program, library) if library else program, tmp_path, *arguments)
    assert len(made) >= least
    assert missing(library_of(program, library) if library else program, made) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/usr/bin/sqlite3", "/usr/bin/git", "/usr/bin/python3"])
def test_no_call_that_another_disassembler_shows_is_missing(path: str) -> None:
    if shutil.which("objdump") is None:
        pytest.skip("objdump is not installed; as root: apt-get install binutils")
    program = installed(path)
    shown = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", "-j", ".text", program],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    direct = re.compile(r"^ +([0-9a-f]+):\t(?:bnd )?call +([0-9a-f]+) <(?!\S*@plt>)", re.MULTILINE)
    made = {(int(site, 16), int(target, 16)) for site, target in direct.findall(shown)}
    assert len(made) > 200
    assert missing(program, made) == []


def installed(path: str) -> Path:
    if not Path(path).exists():
        pytest.skip(f"{path} is not installed")
    return Path(path).resolve()


def library_of(program: Path, name: str) -> Path:
    shown = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    found = re.search(rf"{re.escape(name)} => (\S+)", shown)
    assert found is not None, shown
    return Path(found[1]).resolve()
