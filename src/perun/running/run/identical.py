"""Whether the two sides run the same program on the same input, so that no difference can be theirs.

A program may read files that its command line does not name. So where a compiled program is the same, but
other files of the two working copies differ, one run of each side shows whether it opens one of those.

A program that was built twice is the same where its parts are that are loaded into memory. What only
debuggers read, such as the folder in which it was built, and the build id that is made of all of it, may
differ.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import stat
import struct
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from perun.core.errors import PerunError
from perun.core.process.command import find_executable
from perun.core.process.execution import Execution
from perun.native.changed_code import Ranges, changed_code, unwinds
from perun.native.elf import ALLOCATED, MAGIC, NO_BITS, Damaged, ElfFile
from perun.plugin.api import Run

_NOT_COMPARED: Final = frozenset({".git", ".perun"})


Opens = Callable[[Run, Collection[str]], bool | None]
"""Tells whether one run opens one of the files, named relative to its folder; None where it cannot tell."""
Executes = Callable[[Run, Ranges], bool | None]
"""Tells whether one run executes some of this code of its program; None where it cannot tell."""


def why_identical(base: Run, head: Run, opens: Opens, executes: Executes, prepared: bool) -> str:
    """Why both run the same; empty where they may differ.

    A compiled program of the project is the same where its loaded parts are, the shared libraries in its
    folder, and the files that the command line names; and where both copies have the same files, of which
    neither side opens one that differs. It may differ in code that a run of the base does not execute.
    Of any other program all files of the project must be the same, or, of one of Python, neither side opens
    one that differs.

    :param prepared: whether commands prepare a version: they may install modules of Python elsewhere.
    """
    try:
        old, new = (_program_of(run) for run in (base, head))
        compiled = _is_compiled(old, base) and _is_compiled(new, head)
        if compiled:
            return _why_program_identical(base, head, (old, new), opens, executes)
        differing = _differing(base.cwd, head.cwd)
        if differing == []:
            return "all files are the same on both sides"
        if (
            differing
            and not prepared
            and _is_python(old, base)
            and _opens_none((base, head), differing, opens)
        ):
            return "it opens no file that differs"
    except (PerunError, OSError):
        pass  # what is wrong with the command is found when it runs
    return ""


def _why_program_identical(
    base: Run, head: Run, programs: tuple[Path, Path], opens: Opens, executes: Executes
) -> str:
    old, new = (_of_program(program, run) for program, run in zip(programs, (base, head), strict=True))
    changed: Ranges | None = ()
    if old != new:
        # Of a build that differs more, or where an input differs, nothing is known.
        changed = changed_code(*programs) if old[1:] == new[1:] else None
    differing = _differing(base.cwd, head.cwd)
    if changed is None or differing is None:
        return ""
    loaded = {os.path.relpath(one, run.cwd) for one, run in zip(programs, (base, head), strict=True)}
    names = [name for name in differing if name not in loaded and not _is_built(name)]
    if names and not _opens_none((base, head), names, opens):
        return ""
    if changed:
        if executes(base, changed) is not False:
            return ""
        files = ", and opens no file that differs" if names else ""
        return f"it executes no code that changed{files}"
    if names:
        return "the compiled program is the same on both sides, and opens no file that differs"
    return "the compiled program and its input are the same on both sides"


def _is_built(name: str) -> bool:
    return ".so" in Path(name).suffixes


def _opens_none(runs: Iterable[Run], names: Collection[str], opens: Opens) -> bool:
    return all(opens(run, names) is False for run in runs)


def _is_python(program: Path, run: Run) -> bool:
    """Whether it is a program of Python that keeps what it compiled of its modules beside them."""
    return program.name.startswith("python") and "PYTHONPYCACHEPREFIX" not in run.environ


def _program_of(run: Run) -> Path:
    return Path(find_executable(run.command().argv[0], run.cwd, run.environ))


def _is_compiled(program: Path, run: Run) -> bool:
    """Whether it is a program of the project in machine code."""
    if not program.resolve().is_relative_to(run.cwd.resolve()):
        return False
    with open(program, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


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
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            elf = ElfFile(file)
            loaded = [one for one in elf.sections if one.flags & ALLOCATED]
            for section in loaded:
                if section.name != ".note.gnu.build-id":
                    digest.update(f"\0{section.name}\0{section.address}\0{section.size}\0".encode())
                    if section.type != NO_BITS:
                        digest.update(elf.content(section))
    except Damaged:
        loaded = []
    return digest.hexdigest() if loaded else _checksum(path)  # sections may be removed


def _of_folder(folder: Path) -> list[tuple[str, str]]:
    """Relative paths and checksums of all files below the folder, in the order of the paths."""
    return [(os.path.relpath(path, folder), _checksum(path)) for path in _files(folder)]


def _differing(base: Path, head: Path) -> list[str] | None:
    """The names of regular files that are not the same in two folders; None where not both have the same
    names, or links differ: that can be seen without opening them."""
    names = [[os.path.relpath(path, folder) for path in _files(folder)] for folder in (base, head)]
    if names[0] != names[1]:
        return None
    found = []
    for name in names[0]:
        old, new = base / name, head / name
        before, after = os.lstat(old), os.lstat(new)
        same = (before.st_mode, before.st_size) == (after.st_mode, after.st_size)
        if same and _checksum(old) == _checksum(new):
            continue
        if not (stat.S_ISREG(before.st_mode) and stat.S_ISREG(after.st_mode)):
            return None
        found.append(name)
    return found


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


# Which code a program executes: told by callgrind, which needs no rights and follows all processes.


def executes_any(run: Run, ranges: Ranges, scratch: Path, seconds: float) -> bool | None:
    """Whether one run executes code of its program, or handles an exception; None where that cannot be told:
    there is no valgrind, the run takes longer under it, which is 50 times as slow, or it fails.

    :param ranges: the code, as :func:`~perun.native.changed_code.changed_code` tells it.
    :param scratch: a folder for what the run needs.
    """
    try:
        program = os.path.realpath(_program_of(run))
        command = run.command()
        valgrind = find_executable("valgrind", run.cwd, run.environ)
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            out = os.path.join(os.path.abspath(folder).replace("%", "%%"), "out.%p")
            words = [
                *_CALLGRIND,
                f"--callgrind-out-file={out}",
                f"--log-file={os.devnull}",
                "--",
                *command.argv,
            ]
            stdin = run.workload if run.workload.strip().startswith("<") else ""
            counted = run._replace(cmd=shlex.join([valgrind, *words]), args="", workload=stdin)
            with Execution(counted, scratch, seconds) as execution:
                sample = execution.record()
            if sample.interruption is not None:
                raise sample.interruption
            if sample.early or sample.status:
                return None
            found = [_executes(Path(folder, name), program, ranges) for name in os.listdir(folder)]
    except (PerunError, OSError, ValueError):
        return None
    # One file at least is of the program itself, or it was not followed.
    return None if True not in (seen for seen, _ in found) else any(hit for _, hit in found)


_CALLGRIND: Final = (
    "--tool=callgrind", "--command-line-only=yes", "--vgdb=no", "--trace-children=yes", "--demangle=no",
    "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no",
)  # fmt: skip


def _executes(file: Path, program: str, ranges: Ranges) -> tuple[bool, bool]:
    """Whether the process executed code of the program, and some of the ranges or for an exception."""
    starts = [start for start, _ in ranges]
    seen = hit = inside = False
    with open(file, "rb") as opened:
        for line in opened:
            if line.startswith(b"ob="):
                inside = os.path.realpath(os.fsdecode(line[3:].rstrip(b"\n"))) == program
            elif line.startswith(b"fn="):
                hit |= unwinds(line[3:].decode("utf-8", "replace"))
            elif inside and line.startswith(b"0x"):
                address, seen = int(line.split(b" ", 1)[0], 16), True
                place = bisect_right(starts, address) - 1
                hit |= place >= 0 and address < ranges[place][1]
    return seen, hit


# Which files a program opens: told by the kernel (inotify(7)) while it runs once.
#
# That needs no rights and no tool. An event names the file and its folder, whoever opens it, so that children
# of the program are seen as well, and so is what is mapped into memory.

MAX_FOLDERS: Final = 1000
"""Folders that are watched at most; a user may watch some thousands in all."""
_OPENED: Final = 0x20
_OVERFLOW: Final = 0x4000
_EVENT: Final = struct.Struct("iIII")
_BUFFER: Final = 1 << 16


def opens_any(run: Run, names: Collection[str], scratch: Path, seconds: float) -> bool | None:
    """Whether one run opens one of the files; None where that cannot be told: the system does not watch
    files here, the run takes longer, or it fails.

    :param names: of regular files, relative to the folder of the run; one at least.
    :param scratch: a folder for what the run needs.
    """
    folders = {os.path.dirname(name) for name in names}
    if len(folders) > MAX_FOLDERS:
        return None
    try:
        with _watched(run.cwd, folders) as watch:
            (run.cwd / next(iter(names))).open("rb").close()
            if not watch.opened() & set(names):
                return None  # not all file systems tell
            with Execution(run, scratch, seconds) as execution:
                sample = execution.record()
            if sample.interruption is not None:
                raise sample.interruption
            found = watch.opened()
    except (PerunError, OSError, AttributeError):
        return None
    if sample.early or sample.status or watch.overflowed:
        return None
    return bool(found & set(names))


class _Watch:
    """The files that were opened in some folders.

    :ivar overflowed: whether events were lost, as there were too many.
    """

    def __init__(self, descriptor: int, folders: dict[int, str]) -> None:
        self.overflowed = False
        self._descriptor = descriptor
        self._folders = folders

    def opened(self) -> set[str]:
        """The names of those that were opened since the last call."""
        found: set[str] = set()
        while True:
            try:
                data = os.read(self._descriptor, _BUFFER)
            except BlockingIOError:
                return found
            for number, mask, name in _events(data):
                self.overflowed |= bool(mask & _OVERFLOW)
                if name:
                    found.add(os.path.join(self._folders.get(number, ""), name))


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    """The number of the watched folder, the mask and the name of the file of each event."""
    place = 0
    while place < len(data):
        number, mask, _, size = _EVENT.unpack_from(data, place)
        place += _EVENT.size
        yield number, mask, os.fsdecode(data[place : place + size].rstrip(b"\0"))
        place += size


@contextmanager
def _watched(top: Path, folders: Collection[str]) -> Iterator[_Watch]:
    """:raises OSError: where a folder cannot be watched. :raises AttributeError: where the C library has no
    inotify."""
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    try:
        numbers = {}
        for folder in folders:
            number = library.inotify_add_watch(descriptor, os.fsencode(top / folder), _OPENED)
            if number < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch")
            numbers[number] = folder
        yield _Watch(descriptor, numbers)
    finally:
        os.close(descriptor)
