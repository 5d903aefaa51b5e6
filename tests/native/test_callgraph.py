"""Call graphs of real programs against what their compiler, other disassemblers and a run say."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from capstone import CS_ARCH_X86, CS_MODE_64, Cs

from callgrind_calls import calls_within
from compiling import CompilerCache
from perun.core.errors import JobFailed
from perun.native.binary import Binary
from perun.native.callgraph.decode import PADDING, InstructionDecoder, MachineCode
from perun.native.callgraph.extract import CodePieces, extract
from perun.native.callgraph.graph import MODES, CallGraph, GraphFunction
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
def test_calls_are_those_that_the_compiler_tells(options, expected, compiled_once: CompilerCache) -> None:
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
    found = {(names[bare.functions[call.caller].address], call.callee, call.kind) for call in bare.calls}
    shown = {
        (
            call.caller,
            f"sub_{whole.functions[call.callee].address:x}"
            if call.callee in whole.functions
            else call.callee,
            call.kind,
        )
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
    graph, pieces = extract(image), CodePieces(image, InstructionDecoder(image))
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
    assert len(made) >= 8 and missing(program, made) == []


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
    assert len(made) > 200 and missing(program, made) == []


def installed(path: str) -> Path:
    if not Path(path).exists():
        pytest.skip(f"{path} is not installed")
    return Path(path).resolve()


def library_of(program: Path, name: str) -> Path:
    shown = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    found = re.search(rf"{re.escape(name)} => (\S+)", shown)
    assert found is not None, shown
    return Path(found[1]).resolve()


# -- What each way to compare functions takes for a change, on functions in assembly language --------------


BODY = """
    push rbx
    push r12
    mov rbx, rdi
    mov r12, rsi
    mov ecx, 3
    mov edx, 5
    lea eax, [rcx + rdx]
    test rbx, rbx
    je 1f
    mov rdi, rbx
    mov rsi, r12
    call other
    add eax, 7
    mov rcx, qword ptr [rip + variable]
    add rax, rcx
1:  pop r12
    pop rbx
    ret
"""


def changed(*edits: tuple[str, str]) -> str:
    text = BODY
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


RENAMED = changed(("rbx", "R"), ("r12", "rbx"), ("R", "r12"))
SCRATCH = changed(("ecx", "r9d"), ("edx", "r10d"), ("rcx", "r9"), ("rdx", "r10"))
REORDERED = changed(("    mov ecx, 3\n    mov edx, 5\n", "    mov edx, 5\n    mov ecx, 3\n"))
LATER = changed(("    mov r12, rsi\n    mov ecx, 3\n", "    mov ecx, 3\n    mov r12, rsi\n"))
PADDED = changed(("1:  pop", ".p2align 5\n1:  pop"))
SWAPPED = changed(("mov rdi, rbx\n    mov rsi, r12", "mov rdi, r12\n    mov rsi, rbx"))
CONSTANT = changed(("add eax, 7", "add eax, 9"))
VARIABLE = changed(("[rip + variable]", "[rip + elsewhere]"))
OPCODE = changed(("add eax, 7", "sub eax, 7"))
LOADED = "    mov rcx, qword ptr [rip + variable]\n    add rax, rcx\n"
DEPENDENT = changed((f"    add eax, 7\n{LOADED}", f"{LOADED}    add eax, 7\n"))
LONGER = changed(("add eax, 7", "add eax, 7\n    neg eax"))
BRANCH = changed(("je 1f", "jne 1f"))
CASES = {
    "nothing": (BODY, ()),
    "padding": (PADDED, ()),
    "renamed registers": (RENAMED, ("strict",)),
    "renamed scratch registers": (SCRATCH, ("strict",)),
    "other order": (REORDERED, ("strict",)),
    "other order of more": (LATER, ("strict",)),
    "arguments swapped": (SWAPPED, ("strict", "color")),
    "a constant": (CONSTANT, ("strict", "color")),
    "a variable": (VARIABLE, ("strict", "color")),
    "an opcode": (OPCODE, ("semistrict", "strict", "color")),
    "the condition of a jump": (BRANCH, ("semistrict", "strict", "color")),
    "order of dependent instructions": (DEPENDENT, ("semistrict", "strict", "color")),
    "an instruction more": (LONGER, MODES),
}
"""What differs from the function `base`, and the ways to compare that take it for a change."""


@pytest.fixture(scope="module")
def functions(compiled_once: Callable[..., Path], tmp_path_factory) -> dict[str, GraphFunction]:
    """`base` and the functions of the cases by their numbers, in one library."""
    bodies = {"base": BODY} | {f"case{number}": body for number, (body, _) in enumerate(CASES.values())}
    parts = [".intel_syntax noprefix", ".bss", ".lcomm gap, 24", ".data", "variable: .quad 1"]
    parts += ["elsewhere: .quad 2", ".type variable, @object", ".size variable, 8"]
    parts += [".type elsewhere, @object", ".size elsewhere, 8", ".text"]
    parts += [".type other, @function", "other: ret", ".size other, . - other"]
    for name, body in bodies.items():
        parts += [f".globl {name}", f".type {name}, @function", f"{name}:{body}", f".size {name}, . - {name}"]
        parts += [".byte 0xcc"]  # so that addresses are odd
    source = tmp_path_factory.mktemp("assembly") / "cases.s"
    source.write_text("\n".join([*parts, '.section .note.GNU-stack,"",@progbits', ""]))
    return dict(static_graph(compiled_once("gcc", "-shared", "-nostdlib", source)).functions)


@pytest.mark.parametrize("name", CASES)
def test_each_mode_finds_what_it_promises(name: str, functions: dict[str, GraphFunction]) -> None:
    _, modes = CASES[name]
    base, other = functions["base"], functions[f"case{list(CASES).index(name)}"]
    found = [mode for mode in MODES if getattr(base.fingerprints, mode) != getattr(other.fingerprints, mode)]
    assert found == list(modes) and other.sites == base.sites == ("other",)


# -- Instructions as call graphs read them are those that capstone's own binding shows ---------------------


DECODED = Path(__file__).parent / "programs" / "callgraph.c"
BUILDS = {"movable": ("-O2",), "fixed place": ("-O2", "-no-pie"), "large": ("-O2", "-static-pie")}
_RELATIVE = re.compile(r"\[rip(?: ([+-]) (\w+))?\]")


def texts(code: MachineCode) -> list[tuple[int, str, str, int | None]]:
    """Address, mnemonic, operands, and what an instruction is relative to."""
    return [
        (address, form.mnemonic, form.operands, code.leads.get(position))
        for position, (address, form) in enumerate(zip(code.addresses, code.forms, strict=True))
    ]


def shown(data: bytes, start: int) -> list[tuple[int, str, str, int | None]]:
    """The same from the text of the disassembler, without what does nothing."""
    capstone = Cs(CS_ARCH_X86, CS_MODE_64)
    capstone.skipdata = True
    found = []
    for address, size, mnemonic, operands in capstone.disasm_lite(data, start):
        plain = mnemonic.rpartition(" ")[2]
        if plain in ("nop", "fnop"):
            continue
        place = _RELATIVE.search(operands)
        lead = None
        if place is not None:
            distance = int(place[2] or "0", 0) * (-1 if place[1] == "-" else 1)
            lead, operands = address + size + distance, _RELATIVE.sub("[@]", operands)
        elif (plain.startswith(("j", "loop")) or plain == "call") and operands[:1].isdecimal():
            lead, operands = int(operands, 0), ""
        found.append((address, mnemonic, operands, lead))
    return found


@pytest.mark.parametrize(
    "options",
    [pytest.param(options, id=name, marks=pytest.mark.slow if name == "large" else ())
     for name, options in BUILDS.items()],
)  # fmt: skip
def test_instructions_are_those_of_the_disassembler(options, compiled_once: CompilerCache) -> None:
    image = read_image(compiled_once("gcc", *options, DECODED))
    decoder = InstructionDecoder(image)
    for area in image.areas:
        if not area.executable:
            continue
        expected = shown(area.data, area.address)
        assert texts(decoder.code(area.address, area.end)) == expected
        assert texts(decoder.code(area.address, area.end)) == expected  # now all forms are known
    assert all(form.kind != PADDING or form.mnemonic.endswith("nop") for form in decoder.forms)


FIXED = """
#include <stdio.h>
static int first = 1, second = 2;
static void one(void) { puts("one"); }
static void two(void) { puts("two"); }
static void (*volatile chosen)(void);
__attribute__((noinline)) void set_one(void) { chosen = one; }
__attribute__((noinline)) void set_two(void) { chosen = two; }
__attribute__((noinline)) int *give_first(void) { return &first; }
__attribute__((noinline)) int *give_second(void) { return &second; }
int main(void) {
    set_one();
    chosen();
    set_two();
    chosen();
    return *give_first() + *give_second();
}
"""


def test_a_place_and_a_number_of_one_instruction_are_both_read(compiled_once, tmp_path: Path) -> None:
    source = tmp_path / "fixed.c"
    source.write_text(FIXED)
    functions = static_graph(compiled_once("gcc", "-O2", "-no-pie", "-fno-pie", source)).functions
    assert functions["one"].address_taken and functions["two"].address_taken
    assert functions["set_one"].sites == ("one",) and functions["set_two"].sites == ("two",)
    for mode in ("strict", "color"):
        prints = {name: getattr(one.fingerprints, mode) for name, one in functions.items()}
        assert prints["give_first"] != prints["give_second"]
