"""What each way to compare functions takes for a change, on functions in assembly language."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from perun.native.callgraph.graph import MODES, GraphFunction
from perun.native.image import static_graph

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
def functions(
    compiled_once: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, GraphFunction]:
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
    assert found == list(modes)
    assert other.sites == base.sites == ("other",)
