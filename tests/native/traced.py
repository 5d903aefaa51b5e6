"""What is known of the programs that calls are recorded of, and what profiles say of them."""

import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from compiling import CompilerCache
from perun.profile.factory import Profile

Trace = Callable[..., Profile]
"""Traces a program: `trace(program, "100", engine="uftrace", func=("list_search",))`."""
PROGRAMS = Path(__file__).with_name("programs")

COUNTS: dict[tuple[str, str], dict[str, int]] = {
    ("trace_list.c", "50"): {"main": 1, "list_insert": 50, "list_search": 50, "list_destroy": 1},
    ("trace_skiplist.c", "70"): {"main": 1, "skiplist_append": 70, "skiplist_search": 30},
    ("trace_sort.c", "100"): {"main": 1, "fill": 30, "selection_sort": 30},
    ("trace_recursion.c", "500"): {"main": 1, "fibonacci": 1973, "is_even": 6, "is_odd": 5, "deep": 501},
    ("trace_threads.c", "100"): {"main": 1, "work": 4, "outer": 400, "inner": 1200},
    ("trace_exceptions.cpp", "50"): {
        "main": 1, "catcher": 50, "with_destructor": 50, "middle": 50, "thrower": 50
    },
    ("trace_longjmp.c", "50"): {
        "main": 1, "catcher": 50, "middle": 100, "thrower": 100, "large": 25, "after": 75
    },
    ("trace_fork.c", "30"): {"main": 1, "spawn": 2, "in_child": 2, "work": 90},
}  # fmt: skip
"""How often functions are called, by the source of the program and its argument."""


def calls(profile: Profile) -> Counter[str]:
    """How often each function was called, by its name without parameters."""
    found: Counter[str] = Counter()
    for group in profile.groups():
        found[str(group.constants["uid"]).partition("(")[0]] += group.size
    return found


def sizes(profile: Profile, function: str) -> list[int]:
    """The sizes of the calls of a function, in their order."""
    rows = [one for _, one in profile.all_resources() if str(one["uid"]).partition("(")[0] == function]
    return [row["structure-unit-size"] for row in sorted(rows, key=lambda row: row["timestamp"])]


def sources(profile: Profile) -> dict[str, str]:
    """What the sizes of each function are, by its name without parameters."""
    return {
        str(group.constants["uid"]).partition("(")[0]: str(group.constants["size-source"])
        for group in profile.groups()
    }


def plain(compiled_once: CompilerCache, source: str) -> Path:
    """One of the programs as anybody compiles it, but that each of its functions is called."""
    compiler = "c++" if source.endswith(".cpp") else "cc"
    options = ("-g", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-fno-ipa-icf", "-pthread")
    return compiled_once(compiler, *options, PROGRAMS / source)


def built(program: Path, options: str, text: str, compiler: str = "cc") -> Path:
    """Compile a program of one file, whose source is left beside it."""
    source = program.with_suffix(".cpp" if "+" in compiler else ".c")
    source.write_text(text)
    command = [compiler, *options.split(), source.name, "-o", program.name]
    subprocess.run(command, cwd=program.parent, check=True)
    return program


def script(path: Path, text: str) -> Path:
    """A script of the shell that can be executed."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def counted(runtime: Path) -> str:
    """Options of the compiler for a program whose time the runtime counts; see `programs/counted_clock.h`."""
    return f"-fsanitize-coverage=trace-pc -Wl,{runtime}"
