"""Instructions as call graphs read them are those that capstone's own binding shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from capstone import CS_ARCH_X86, CS_MODE_64, Cs

from compiling import CompilerCache
from perun.native.callgraph.decode import PADDING, Code, Decoder
from perun.native.image import read_image, static_graph

SOURCE = Path(__file__).parent / "programs" / "callgraph.c"
OPTIONS = {"movable": ("-O2",), "fixed place": ("-O2", "-no-pie"), "large": ("-O2", "-static-pie")}
_RELATIVE = re.compile(r"\[rip(?: ([+-]) (\w+))?\]")


def texts(code: Code) -> list[tuple[int, str, str, int | None]]:
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
     for name, options in OPTIONS.items()],
)  # fmt: skip
def test_instructions_are_those_of_the_disassembler(
    options: tuple[str, ...], compiled_once: CompilerCache
) -> None:
    image = read_image(compiled_once("gcc", *options, SOURCE))
    decoder = Decoder(image)
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


def test_a_place_and_a_number_of_one_instruction_are_both_read(
    compiled_once: CompilerCache, tmp_path: Path
) -> None:
    source = tmp_path / "fixed.c"
    source.write_text(FIXED)
    graph = static_graph(compiled_once("gcc", "-O2", "-no-pie", "-fno-pie", source))
    functions = graph.functions
    assert functions["one"].address_taken and functions["two"].address_taken
    assert functions["set_one"].sites == ("one",) and functions["set_two"].sites == ("two",)
    for mode in ("strict", "color"):
        prints = {name: getattr(one.fingerprints, mode) for name, one in functions.items()}
        assert prints["give_first"] != prints["give_second"]
