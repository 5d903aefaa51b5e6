"""Which files the user means: libraries by their names, and what kind of program a file is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perun.elf import DYNAMIC, PT_INTERP, SYMBOLS, Damaged, ElfFile, text_at
from perun.errors import UsageError
from perun.plugin.params import nearest
from perun.process import programs

if TYPE_CHECKING:
    from perun.plugin.api import Run


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
