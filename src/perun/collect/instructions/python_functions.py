"""Functions of Python programs: what the interpreter tells profilers of the machine about them.

From Python 3.12 on the interpreter can call each function of Python by a few instructions of its own, and
writes down where these lie, for perf ("Python support for the Linux perf profiler" in Python's manual). So a
function of Python is a function of the machine, which all that the interpreter does for it is called by.
"""

from __future__ import annotations

import contextlib
import os
import re
import string
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from perun.collect._common.interpreter import program_of, succeeds
from perun.collect.instructions.graph import Function
from perun.errors import CollectorUnavailable
from perun.plugin.api import Run
from perun.regular import open_regular

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
    python = program_of(run).python
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

    def named(self, function: Function) -> Function:
        """The function of Python whose instructions these are; the function itself where it is none."""
        if function.object or not function.name.startswith("0x"):
            return function
        address = int(function.name, 16)
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return function
        start = self._starts[place]
        size, name = self._names[start]
        return Function(name) if address < start + size else function


def _entries(file: Iterator[bytes]) -> dict[int, tuple[int, str]]:
    found = {}
    for line in file:
        entry = _ENTRY.fullmatch(line)
        if entry:
            found[int(entry[1], 16)] = int(entry[2], 16), entry[3].decode("utf-8", "replace")
    return found
