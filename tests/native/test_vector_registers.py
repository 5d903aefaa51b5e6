"""Which functions may change vector registers: where the analysis says so, they do, and the program goes on.

Random programs with functions of whole and floating numbers are compiled. Then each function that may be
recorded by an engine that loses vector registers loses all of them at its entry: the output must stay.
"""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from perun.collect.trace.engines.uftrace_safety import KEPT, Instruction, keeps_over_calls, unsafe_functions
from perun.collect.trace.plan import TraceSelection, make_plan
from perun.native.binary import Binary

FUNCTIONS = 12
LOSE_ALL = "".join(f"\tpcmpeqd %xmm{number}, %xmm{number}\n" for number in range(16))
OPTIONS = ("-O2", "-O3", "-Os", "-O2 -march=haswell", "-O2 -fno-inline", "-O2 -fPIC", "-O1")
VALUES = {"int": "(int)(s % 97)", "long": "s % 91", "double": "x * 0.5", "float": "(float)x"}


def source(seed: int) -> str:
    """A program of functions that call each other, some of them with floating numbers."""
    chosen = random.Random(seed)
    known: list[tuple[str, str, list[str]]] = []
    lines = ["#include <stdio.h>", "typedef struct { int a, b, c, d; } four;", "static double total;"]
    for number in range(FUNCTIONS):
        floats = chosen.random() < 0.4
        kinds = ["int", "int", "long", *(["double", "float"] if floats else [])]
        result = chosen.choice(["int", "long", "void", *(["double"] if floats else [])])
        types = [chosen.choice(kinds) for _ in range(chosen.randint(1, 3))]
        body = [f"  long s = p0 + {number}; four q = {{1, 2, 3, (int)s}}, w = q;"]
        body += ["  double x = s * 0.25;" if floats or chosen.random() < 0.2 else "  long x = s;"]
        body += [f"  for (int i = 0; i < {chosen.randint(1, 4)}; i++) {{"]
        for _ in range(chosen.randint(1, 4)):
            if known and chosen.random() < 0.6:
                name, returned, wanted = chosen.choice(known)
                call = f"{name}({', '.join(VALUES[one] for one in wanted)})"
                body.append(f"    {call};" if returned == "void" else f"    s += (long){call};")
            else:
                body.append(f"    {chosen.choice(STEPS)}")
        body.append("    s = s % 10007; }" + ("  total += x * 0.125;" if floats else "  total += s;"))
        body.append("" if result == "void" else f"  return ({result})(s % 1009 + x * 0);")
        parameters = ", ".join(f"{one} p{place}" for place, one in enumerate(types))
        storage = chosen.choice(["static ", ""])
        lines += [f"__attribute__((noinline)) {storage}{result} f{number}({parameters}) {{", *body, "}"]
        known.append((f"f{number}", result, types))
    calls = [f"  {name}({', '.join(VALUES[one] for one in wanted)}); x += 0.5;" for name, _, wanted in known]
    lines += ["int main(void) { double x = 0.25; for (long s = 0; s < 5; s++) {", *calls, "}"]
    return "\n".join([*lines, '  printf("%.12g %.12g\\n", total, x); return 0; }']) + "\n"


STEPS = (
    "x = x * 3 / 4 + i;", "s = s * 3 % 1000 + i;", "w = q; q.a += w.d; s += q.a % 7;",
    "if (s % 3) x -= i; else s += 2;"
)  # fmt: skip


def build(folder: Path, options: str, seed: int) -> tuple[Path, Path]:
    """The program, and its assembly."""
    (folder / "random.c").write_text(source(seed))
    for command in (f"gcc -w -g {options} -S random.c -o random.s", "gcc random.s -o random"):
        subprocess.run(command.split(), cwd=folder, check=True)
    return folder / "random", folder / "random.s"


def output(program: Path) -> bytes:
    return subprocess.run([program], capture_output=True, check=True, timeout=60).stdout


def with_losses(assembly: Path, names: set[str]) -> Path:
    """The program, of which these functions lose all vector registers at their entry."""
    lines = []
    for line in assembly.read_text().splitlines():
        lines.append(line)
        label = re.fullmatch(r"([\w.]+):", line)
        if label and label[1] in names:
            lines.append(LOSE_ALL)
    changed, made = assembly.with_name("losing.s"), assembly.with_name("losing")
    changed.write_text("\n".join(lines) + "\n")
    subprocess.run(["gcc", changed, "-o", made], check=True)
    return made


def judged(program: Path) -> dict[str, str]:
    with Binary(program) as binary:
        probes = make_plan([binary], TraceSelection("userspace")).probes
    found = unsafe_functions(probes, "objdump")
    return {probe.function.symbol: found.get(number, "") for number, probe in enumerate(probes)}


def check(folder: Path, options: str, seed: int, is_needed: bool = False) -> tuple[int, bool]:
    """How many functions are safe, and whether it was needed that others are not for their callers.

    :param is_needed: it is known already, from another program.
    """
    program, assembly = build(folder, options, seed)
    expected = output(program)
    found = judged(program)
    safe = {name for name, reason in found.items() if not reason} - {"main"}
    kept = {name for name, reason in found.items() if reason == KEPT}
    assert output(with_losses(assembly, safe)) == expected, (options, seed, safe)
    is_needed = is_needed or (bool(kept) and output(with_losses(assembly, kept)) != expected)
    return len(safe), is_needed


pytestmark = pytest.mark.skipif(
    not shutil.which("gcc") or not shutil.which("objdump"), reason="there is no gcc or objdump"
)


def test_random_programs(tmp_path: Path) -> None:
    whole, is_needed = 0, False
    for seed, options in enumerate(OPTIONS):
        safe, is_needed = check(tmp_path, options, seed, is_needed)
        whole += safe
    assert whole > len(OPTIONS) and is_needed


@pytest.mark.slow
def test_many_random_programs(tmp_path: Path) -> None:
    for seed in range(100, 400):
        check(tmp_path, OPTIONS[seed % len(OPTIONS)], seed)


def code(text: str) -> list[Instruction]:
    """Instructions of eight bytes each: `name operands`; a label is the number of an instruction."""
    lines = [line.strip().encode().partition(b" ") for line in text.strip().splitlines()]
    return [Instruction(8 * place, name, operands.strip()) for place, (name, _, operands) in enumerate(lines)]


KEEPING = {
    "read after a call": "movsd (%rdi),%xmm5\n call 800\n addsd %xmm5,%xmm0\n ret",
    "read in a loop": "movsd (%rdi),%xmm5\n addsd %xmm5,%xmm1\n call 800\n jne 8\n ret",
    "stored": "call 800\n movsd %xmm5,(%rdi)\n ret",
    "not wholly written": "call 800\n movss %xmm0,%xmm5\n movaps %xmm5,%xmm0\n ret",
    "one of two ways": "call 800\n je 18\n pxor %xmm5,%xmm5\n movaps %xmm5,%xmm0\n ret",
    "a mask": "call 800\n vmovups (%rdi),%zmm0{%k1}\n ret",
    "a wide register": "vmovupd (%rdi),%ymm7\n call 800\n vaddpd %ymm7,%ymm0,%ymm0\n ret",
    "behind a computed jump": "jmp *%rax\n movaps %xmm5,%xmm0\n ret",
    "no result": "call 900\n addsd %xmm0,%xmm0\n ret",
}
NOT_KEEPING = {
    "a result": "call 800\n addsd %xmm0,%xmm0\n ret",
    "cleared": "call 800\n pxor %xmm5,%xmm5\n cvtsi2sd %eax,%xmm5\n addsd %xmm5,%xmm0\n ret",
    "read before": "movsd (%rdi),%xmm5\n addsd %xmm5,%xmm0\n call 800\n ret",
    "written on both ways": "call 800\n je 20\n movsd (%rdi),%xmm5\n jmp 28\n movsd (%rsi),%xmm5\n"
    " movaps %xmm5,%xmm0\n ret",
    "three operands": "call 800\n vaddsd (%rdi),%xmm0,%xmm5\n vmovapd %xmm5,%xmm0\n ret",
    "padding before a loop": "movsd (%rdi),%xmm5\n jmp 18\n nopw (%rax)\n addsd %xmm5,%xmm0\n jne 18\n ret",
    "no call": "addsd %xmm1,%xmm0\n ret",
}


@pytest.mark.parametrize("name", [*KEEPING, *NOT_KEEPING])
def test_what_is_kept_over_calls(name: str) -> None:
    text = {**KEEPING, **NOT_KEEPING}[name]
    assert keeps_over_calls(code(text), {0x900}) is (name in KEEPING)
