"""Whether the two sides run the same program on the same input, so that no difference can be theirs.

A program that was built twice is the same where its parts are that are loaded into memory. What only
debuggers read, such as the folder in which it was built, and the build id that is made of all of it, may
differ.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from perun.errors import PerunError
from perun.plugin.api import Run
from perun.process.finding import find_executable

_MAGIC: Final = b"\x7fELF"
_NOT_COMPARED: Final = frozenset({".git", ".perun"})


def why_identical(base: Run, head: Run) -> str:
    """Why both run the same; empty where they may differ.

    A compiled program of the project is the same where its loaded parts are, the shared libraries in its
    folder, and the files that the command line names. Of any other program all files of the project must be
    the same, since nobody knows which of them it reads.
    """
    try:
        old, new = (_program_of(run) for run in (base, head))
        compiled = _is_compiled(old, base) and _is_compiled(new, head)
        if compiled and _of_program(old, base) == _of_program(new, head):
            return "the compiled program and its input are the same on both sides"
        if _are_the_same(base.cwd, head.cwd):
            return "all files are the same on both sides"
    except (PerunError, OSError):
        pass  # what is wrong with the command is found when it runs
    return ""


def _program_of(run: Run) -> Path:
    return Path(find_executable(run.command().argv[0], run.cwd, run.environ))


def _is_compiled(program: Path, run: Run) -> bool:
    """Whether it is a program of the project in machine code."""
    if not program.resolve().is_relative_to(run.cwd.resolve()):
        return False
    with open(program, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _of_program(program: Path, run: Run) -> list[tuple[str, str]]:
    """Names and checksums of the program, the libraries beside it, and the input files."""
    libraries = [path for path in _files(run.cwd) if ".so" in path.suffixes]
    found = [(os.path.relpath(path, run.cwd), loaded_parts(path)) for path in (program, *libraries)]
    command = run.command()
    words = [*command.argv[1:], *([command.stdin_file] if command.stdin_file else [])]
    for word in words:
        path = run.cwd / word
        if path.is_dir():
            found += [(f"{word}/{name}", digest) for name, digest in _of_folder(path)]
        elif path.is_file():
            found.append((word, _checksum(path)))
    return found


def loaded_parts(path: Path) -> str:
    """A checksum of the sections of an ELF file that are loaded when it runs, without its build id; of any
    other file, of all of it."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for section in ELFFile(file).iter_sections():
                header = section.header
                if header["sh_flags"] & 2 and section.name != ".note.gnu.build-id":  # SHF_ALLOC
                    digest.update(f"\0{section.name}\0{header['sh_addr']}\0{header['sh_size']}\0".encode())
                    if header["sh_type"] != "SHT_NOBITS":
                        digest.update(section.data())
    except ELFError:
        return _checksum(path)
    return digest.hexdigest()


def _of_folder(folder: Path) -> list[tuple[str, str]]:
    """Relative paths and checksums of all files below the folder, in the order of the paths."""
    return [(os.path.relpath(path, folder), _checksum(path)) for path in _files(folder)]


def _are_the_same(base: Path, head: Path) -> bool:
    """Whether two folders hold the same; all sizes are compared before any content is read."""
    names = [[os.path.relpath(path, folder) for path in _files(folder)] for folder in (base, head)]
    if names[0] != names[1]:
        return False
    pairs = [(base / name, head / name) for name in names[0]]
    if any(os.lstat(old).st_size != os.lstat(new).st_size for old, new in pairs):
        return False
    return all(_checksum(old) == _checksum(new) for old, new in pairs)


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NOT_COMPARED)
        yield from (Path(parent, name) for name in sorted(names) if name not in _NOT_COMPARED)


def _checksum(path: Path) -> str:
    if path.is_symlink():
        return f"link to {os.readlink(path)}"
    if not path.is_file():
        return "neither a file nor a link"
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
