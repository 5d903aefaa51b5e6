"""The parameters of the trace collector."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.collect._calls.optimizations.settings import OptimizationParams
from perun.core.errors import UsageError
from perun.core.process import programs
from perun.native.elf import DYNAMIC, PT_INTERP, SYMBOLS, Damaged, ElfFile, text_at
from perun.plugin.params import nearest, param

if TYPE_CHECKING:
    from perun.plugin.api import Run


ENGINES: Final = ("ebpf", "uftrace", "stap")


@dataclass(frozen=True)
class _TraceParams:
    """The functions to trace, the engine, and what happens to the command's output and temporary files."""

    engine: str = param(
        "auto",
        short="-e",
        choices=("auto", *ENGINES),
        help="The engine that records calls: ebpf (needs root), uftrace, stap (SystemTap, needs root), or "
        "auto: the best one for the program and this machine.",
    )
    strategy: str = param(
        "userspace",
        short="-s",
        choices=("userspace", "all", "u_sampled", "a_sampled", "custom"),
        help="The functions to trace: those of the program's own source (userspace), those of libraries too "
        "(all), the sampled versions of both, or only what --func, --usdt and --dynamic name (custom).",
    )
    func: tuple[str, ...] = param(
        (),
        short="-f",
        metavar="<func>",
        help="Also trace this function, as <func> or <lib>#<func>#<sampling>; may be repeated.",
    )
    usdt: tuple[str, ...] = param(
        (),
        short="-u",
        metavar="<usdt>",
        help="Also trace this USDT probe, as <lib>#<usdt>#<sampling>, or the time between two of them, as "
        "<usdt1>#<usdt2>; may be repeated.",
    )
    dynamic: tuple[str, ...] = param(
        (),
        short="-d",
        metavar="<dynamic>",
        help="Also trace this line, as <lib>#<source>:<line>#<sampling>, or the time between two of them, as "
        "<source>:<line>#<source>:<line>; may be repeated.",
    )
    size: tuple[str, ...] = param(
        (),
        metavar="<func>=<expression>",
        help="The size of the structure that a function works on, e.g. 'List_search=l->size'. By default it "
        "is a parameter or member called size, length, count ..., or the size of a container of the C++ "
        "library.",
    )
    global_sampling: int = param(
        0,
        short="-g",
        metavar="<global_sampling>",
        minimum=0,
        help="Keep only one in so many calls of each function; the <sampling> of a rule takes precedence.",
    )
    with_usdt: bool = param(
        False, long="--with-usdt/--no-usdt", help="Also trace all USDT probes of the traced files."
    )
    binary: str = param(
        "",
        short="-b",
        metavar="<binary>",
        help="The program to trace, if the command is only a script that starts it.",
    )
    follow_children: bool = param(
        False,
        help="Also trace the other programs that the command executes, by the same choice of functions: of "
        "each its own source by default, or what --func names in it. Needs the engine ebpf.",
    )
    libs: tuple[str, ...] = param(
        (),
        short="-l",
        metavar="<libs>",
        help="A library to trace, too: a path, or a name as libc.so.6; may be repeated. Where --func, --usdt "
        "or --dynamic name something of it, that alone is traced.",
    )
    timeout: float = param(
        0.0,
        short="-t",
        metavar="<timeout>",
        minimum=0,
        help="Stop the command after so many seconds, and keep what was recorded until then as an incomplete "
        "profile; 0 means no limit.",
    )
    zip_temp: bool = param(
        False,
        short="-z",
        help="Compress the temporary files into an archive in .perun/logs before deleting them.",
    )
    keep_temp: bool = param(False, short="-k", help="Keep the temporary files.")
    verbose_trace: bool = param(
        False, short="-vt", help="Write the decoded calls as text to a temporary file; useful for debugging."
    )
    quiet: bool = param(False, short="-q", help="Print neither progress nor notes.")
    watchdog: bool = param(False, short="-w", help="Log each step of the collection to a temporary file.")
    output_handling: str = param(
        "default",
        short="-o",
        choices=("default", "capture", "suppress"),
        help="What happens to the output of the command: default: it goes to the terminal; capture: also to "
        "a temporary file; suppress: it is discarded.",
    )
    diagnostics: bool = param(
        False,
        short="-i",
        help="The same as --watchdog --verbose-trace --output-handling capture --zip-temp.",
    )
    stap_cache_off: bool = param(False, short="-sc", help="Have SystemTap cache no compiled scripts.")
    no_profile: bool = param(
        False, short="-np", help="Record only: make an empty profile, e.g. to keep the temporary files alone."
    )
    ignore_failure: bool = param(False, help="Also make a profile if the command fails.")
    callgraph: str = param(
        "",
        metavar="<file>",
        help="Write the call graph of the program to this file: as JSON if its name ends in .json, for "
        "Graphviz if in .dot or .gv.",
    )
    only_extract_cg: bool = param(
        False, short="-cg", help="Only keep the call graph of the program for this version: nothing is run."
    )
    extract_mixed_cg: bool = param(
        False, short="-mcg", help="Take the calls that were recorded earlier into the call graph, too."
    )
    max_simultaneous_threads: int = param(
        0,
        short="-mt",
        metavar="<int>",
        minimum=0,
        help="Has no effect: sampling counts the calls of all threads together.",
    )
    no_ds_update: bool = param(
        False,
        short="-nds",
        help="Do not keep what was recorded of functions for the optimizations of later runs.",
    )


@dataclass(frozen=True)
class TraceParams(OptimizationParams, _TraceParams):
    """The parameters of the trace collector, those of its own first."""


# Which files the user means: libraries by their names, and what kind of program a file is.

_SONAME, _RPATH, _RUNPATH = 14, 15, 29
"""Tags of what the dynamic linker is told: DT_SONAME, DT_RPATH, DT_RUNPATH."""


class FileKind(NamedTuple):
    """What an ELF file is.

    :ivar soname: the name by which programs ask for a library; empty if it has none.
    :ivar static: whether it is a program that holds its libraries, so that no dynamic linker starts it.
    :ivar stripped: whether the symbols of its own functions were removed.
    :ivar folders: where a program searches its libraries first (RPATH, RUNPATH).
    """

    soname: str = ""
    static: bool = False
    stripped: bool = False
    folders: tuple[str, ...] = ()


def kind_of(path: str) -> FileKind:
    """What the ELF file at `path` is; the defaults for a file that cannot be read."""
    try:
        with open(path, "rb") as file:
            elf = ElfFile(file)
            tags = elf.dynamic()
            table = next((one for one in elf.sections if one.type == DYNAMIC), None)
            names = elf.linked(table) if table is not None else b""
            soname, *searched = (
                os.fsdecode(text_at(names, tags[tag])) if tag in tags else ""
                for tag in (_SONAME, _RPATH, _RUNPATH)
            )
            origin = os.path.dirname(path)
            return FileKind(
                soname,
                not any(one.type == PT_INTERP for one in elf.segments) and not soname and elf.entry != 0,
                all(one.type != SYMBOLS for one in elf.sections),
                tuple(
                    folder.replace("$ORIGIN", origin).replace("${ORIGIN}", origin)
                    for text in searched if text for folder in text.split(":")
                ),
            )  # fmt: skip
    except (OSError, Damaged):
        return FileKind()


def find_library(name: str, run: Run, program: str) -> str:
    """The path of a library that `--libs` names: by a path, or as the program would ask for it.

    :param name: e.g. `./libqueue.so`, `libc.so.6`, `libc.so` or `libc`.
    :raises UsageError: where there is no such library; names the most similar ones.
    """
    path = str(run.cwd / name)
    if "/" in name or os.path.exists(path):
        if not os.path.isfile(path):
            raise UsageError(f"--libs (-l): there is no library {path}", "check the path")
        return path
    folders = [*kind_of(program).folders, *run.environ.get("LD_LIBRARY_PATH", "").split(":")]
    known: dict[str, str] = {}
    for file in (*_in_folders(folders, run.cwd), *_of_the_system()):
        known.setdefault(os.path.basename(file), file)
    for wanted in (name, f"{name}.so"):
        if wanted in known:
            return known[wanted]
    pattern = re.compile(rf"{re.escape(name)}(\.so)?(\.\d+)*")
    versions = [file for file in known if pattern.fullmatch(file)]
    if versions:
        return known[min(versions, key=len)]
    hint = f"{nearest(name, known)}; or name its path"
    raise UsageError(f"--libs (-l): there is no library {name!r}", hint)


def names_of(path: str, given: str = "") -> set[str]:
    """The names by which a rule may call a file: as it was given, its path, its names and its soname.

    :param given: what the user wrote, where that is not the path.
    """
    paths = {path, os.path.realpath(path), given} - {""}
    names = {os.path.basename(one) for one in paths} | {kind_of(path).soname}
    return (paths | names | {name.partition(".so")[0] for name in names}) - {""}


def _in_folders(folders: list[str], cwd: Path) -> Iterator[str]:
    for folder in filter(None, folders):
        path = cwd / folder
        if path.is_dir():
            yield from (str(file) for file in sorted(path.glob("*.so*")) if file.is_file())


def _of_the_system() -> Iterator[str]:
    """The libraries that the dynamic linker knows, those of this machine's kind first."""
    for tool in ("ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"):
        try:
            done = programs.run([tool, "-p"])
        except OSError:
            continue
        text = done.stdout.decode("utf-8", "replace")
        lines = [line.partition(" => ") for line in text.splitlines() if " => " in line]
        lines.sort(key=lambda line: "x86-64" not in line[0])
        yield from (path for _, _, path in lines)
        return
