"""Names functions as profiles do: readable, and the same wherever a version is built and measured."""

from __future__ import annotations

import contextlib
import os
import re
import string
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from shutil import which
from typing import Final

from perun.collect._common.runs import python_program_of, succeeds
from perun.core.errors import CollectorUnavailable
from perun.core.process import programs
from perun.core.regular import open_regular
from perun.native.costs import FunctionFrame, RecordedFunction
from perun.plugin.api import Run

# Functions of Python programs: what the interpreter tells profilers of the machine about them.
#
# From Python 3.12 on the interpreter can call each function of Python by a few instructions of its own, and
# writes down where these lie, for perf ("Python support for the Linux perf profiler" in Python's manual). So
# a function of Python is a function of the machine, which all that the interpreter does for it is called by.

ENVIRONMENT: Final[Mapping[str, str]] = {"PYTHONPERFSUPPORT": "1"}
"""What makes the interpreter do so."""
MARK: Final = "py::"
"""What the names that it writes down begin with; the function and its file follow, with a colon between."""
MAPS: Final = Path("/tmp")
"""Where it writes them: the place is fixed."""
_MAX_BYTES: Final = 1 << 28
_ENTRY: Final = re.compile(rb"([0-9a-f]{1,16}) ([0-9a-f]{1,16}) (.*)\n?")
_SUPPORTS: Final = "import sys, sysconfig; sys.exit(not sysconfig.get_config_var('PY_HAVE_PERF_TRAMPOLINE'))"


def require_support(run: Run) -> None:
    """Do nothing where the command is a Python program whose interpreter tells its functions.

    :raises UsageError: where it is no Python program.
    :raises CollectorUnavailable: where its interpreter is too old, or was built without that.
    """
    python = python_program_of(run).python
    if not succeeds(_SUPPORTS, run, python):
        raise CollectorUnavailable(
            f"--python needs Python 3.12 or newer on 64-bit Linux, which {python} is not",
            "run the program with a newer Python, or leave --python out: then the functions of the "
            "interpreter are counted",
        )


def skipped() -> list[str]:
    """Patterns of callgrind for all names of functions of C: they count for the function that called them.

    All but `main`, and what the loader does: callgrind fails where the outermost functions are skipped.
    """
    letters = string.ascii_letters
    firsts = [one for one in letters if one != "m"]
    firsts += ["m" + one for one in letters + "_" if one != "a"]
    firsts += ["ma" + one for one in letters + "_" if one != "i"]
    firsts += ["_" + one for one in letters + "_" if one != "d"]
    return [f"{one}*" for one in firsts]


class PythonFunctions:
    """The functions that one process has told of.

    :param pid: its number. The file with its functions is read, and removed.
    :param before: those of the process that it was forked from, which it has too.
    """

    def __init__(self, pid: int, before: PythonFunctions | None = None) -> None:
        self._names: dict[int, tuple[int, str]] = dict(before._names) if before else {}
        path = MAPS / f"perf-{pid}.map"
        with contextlib.suppress(OSError), open_regular(path, _MAX_BYTES) as file:
            # Whoever may write there could have put another file in its place.
            if os.fstat(file.fileno()).st_uid == os.geteuid():
                self._names |= _entries(file)
                path.unlink()
        self._starts = sorted(self._names)

    def __bool__(self) -> bool:
        return bool(self._names)

    def named(self, function: RecordedFunction) -> RecordedFunction:
        """The function of Python whose instructions these are; the function itself where it is none."""
        if function.object or not function.name.startswith("0x"):
            return function
        address = int(function.name, 16)
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return function
        start = self._starts[place]
        size, name = self._names[start]
        return RecordedFunction(name) if address < start + size else function


def _entries(file: Iterator[bytes]) -> dict[int, tuple[int, str]]:
    found = {}
    for line in file:
        entry = _ENTRY.fullmatch(line)
        if entry:
            found[int(entry[1], 16)] = int(entry[2], 16), entry[3].decode("utf-8", "replace")
    return found


INTERPRETER: Final = FunctionFrame("(interpreter)")
"""What the interpreter of Python does outside of all functions of Python."""
START_UP: Final = FunctionFrame("(start-up)")
"""What runs before and around the main function of a program, which is the outermost part of every stack."""
NO_SYMBOLS: Final = "(no symbols)"
"""All functions of a binary that have no names: their addresses differ from build to build."""
DEMANGLER: Final = "c++filt"
_MANGLED: Final = re.compile(r"_?_[ZR]")
_ADDRESS: Final = re.compile(r"0x[0-9a-f]+|\[unknown\]|")
_STARTS: Final = frozenset({"(below main)", "__libc_start_main", "__libc_start_call_main", "_start"})
_LOADERS: Final = ("ld-", "ld.so")
_INSTALLED: Final = re.compile(r".*/(?:site|dist)-packages/|.*/lib/(?=python\d)")
_VERSION: Final = re.compile(r"@+[A-Z][\w.]*$")
"""The version that a library gives a symbol, e.g. `printf@@GLIBC_2.2.5`."""
_CLONE: Final = re.compile(r"\.(constprop|isra|lto_priv|llvm|localalias)(\.\d+)*")
"""What compilers add to the symbol of a copy of a function, whose number differs from build to build."""
_CHECKSUM: Final = re.compile(r"::h[0-9a-f]{16}$")
"""What ends the names of Rust, and differs from build to build."""


def is_named(name: str) -> bool:
    """Whether a function has a name, and not only an address."""
    return _ADDRESS.fullmatch(name) is None


class Names:
    """The frames of functions.

    :param folder: where the program ran: sources below it are named relative to it.
    :param environ: whose PATH is searched for the program that demangles.
    :param python: functions of Python alone have frames.
    :ivar mangled: whether names of C++ or Rust are shown as symbols, as that program is missing.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str], *, python: bool = False) -> None:
        self.mangled = False
        self._folders = tuple({os.path.join(path, "") for path in (str(folder), os.path.realpath(folder))})
        self._tool = which(DEMANGLER, path=environ.get("PATH", os.defpath)) or ""
        self._demangled: dict[str, str] = {}
        self._python = python
        self._frames: dict[RecordedFunction, FunctionFrame | None] = {}

    def learn(self, functions: Iterable[RecordedFunction]) -> None:
        """Demangle the names of these functions, all at once."""
        symbols = {_symbol(one) for one in functions if _MANGLED.match(one.name)}
        new = sorted(symbols - self._demangled.keys())
        if new:
            self._demangled |= dict(zip(new, self._ask(new), strict=True))

    def frame(self, function: RecordedFunction) -> FunctionFrame | None:
        """The frame of a function; one whose name is to be demangled has been learnt before.

        None for what lies in no binary and has no name, such as the stubs that calls of libraries go through,
        and code that is made while the program runs: it counts for its caller.
        """
        if function not in self._frames:
            self._frames[function] = self._named(function)
        return self._frames[function]

    def _named(self, function: RecordedFunction) -> FunctionFrame | None:
        if self._python:
            return self._of_python(function.name) if function.name.startswith(MARK) else None
        name = _symbol(function)
        nameless = not is_named(name)
        binary = os.path.basename(function.object)
        if nameless and not binary:
            return None
        if name in _STARTS or (nameless and binary.startswith(_LOADERS)):
            return START_UP
        shown = NO_SYMBOLS if nameless else self._demangled.get(name, name)
        return FunctionFrame(_readable(shown), _readable(self._source(function)))

    def _of_python(self, name: str) -> FunctionFrame:
        """The frame of a function of Python: sources of installed packages are named as they are imported."""
        function, _, file = name.removeprefix(MARK).partition(":")
        source = self._below(file) or _INSTALLED.sub("", file)
        return FunctionFrame(_readable(function), _readable(source))

    def _source(self, function: RecordedFunction) -> str:
        """The source relative to the folder where it is the project's own, else the name of the binary."""
        return self.path(function.file, function.object) or os.path.basename(function.object)

    def path(self, file: str, binary: str) -> str:
        """The path of a source relative to the folder; empty where it is none of the project.

        :param binary: that has it: a source without a folder is the project's where its binary is.
        """
        source = os.path.normpath(file) if file else ""
        inside = self._below(source)
        if not inside and source and not os.path.isabs(source) and self._below(binary):
            inside = source
        return inside

    def _below(self, path: str) -> str:
        """The path relative to the folder; empty where it is not below it."""
        return next((path[len(one) :] for one in self._folders if path.startswith(one)), "")

    def _ask(self, symbols: list[str]) -> list[str]:
        if self._tool:
            try:
                done = programs.run([self._tool], given="\n".join(symbols).encode())
            except OSError:
                pass
            else:
                answers = done.stdout.decode("utf-8", "replace").splitlines()
                if len(answers) == len(symbols):
                    return [_CHECKSUM.sub("", answer) for answer in answers]
        self.mangled = True
        return symbols


def _symbol(function: RecordedFunction) -> str:
    """The symbol of a function as its source makes it."""
    return _CLONE.sub("", _VERSION.sub("", function.name))


def _readable(text: str) -> str:
    return "".join(char if char.isprintable() else "�" for char in text.encode("utf-8", "replace").decode())
