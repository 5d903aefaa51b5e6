"""What a run needs so that a program loads the recorder: an environment, and no `env` before the program."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.native.elf import DYNAMIC_SYMBOLS, SYMBOLS, Damaged, ElfFile
from perun.plugin.api import Run


def preloaded(run: Run, library: Path, settings: Mapping[str, str]) -> Run:
    """The run with the recorder before all other libraries that the user preloads.

    `env NAME=VALUE... program` becomes the program in that environment: it is what the user measures, and its
    own LD_PRELOAD would replace that of the recorder.

    :param settings: the settings of the recorder; see `native/record.h`.
    :raises UsageError: as :meth:`Run.command`.
    """
    plain = _without_env(run)
    others = plain.environ.get("LD_PRELOAD", "")
    preload = ":".join(filter(None, (str(library), others)))
    return plain._replace(environ={**plain.environ, "LD_PRELOAD": preload, **settings})


class _Env(NamedTuple):
    """What `env` starts."""

    argv: list[str]
    environ: dict[str, str]


def _without_env(run: Run) -> Run:
    argv = run._replace(workload="").command().argv
    if os.path.basename(argv[0]) != "env":
        return run
    started = _started_by_env(argv[1:], run.environ)
    if started is None:
        return run
    return run._replace(cmd=shlex.join(started.argv), args="", environ=started.environ)


def _started_by_env(words: Sequence[str], environ: Mapping[str, str]) -> _Env | None:
    """What `env` starts with these arguments; None for options that do more than change the environment."""
    changed, left = dict(environ), list(words)
    while left and left[0].startswith("-"):
        option = left.pop(0)
        if option == "--":
            break
        if option in ("-", "-i", "--ignore-environment"):
            changed.clear()
        elif option in ("-u", "--unset") and left:
            changed.pop(left.pop(0), None)
        elif option.startswith("--unset="):
            changed.pop(option.removeprefix("--unset="), None)
        else:
            return None
    while left and "=" in left[0]:
        name, _, value = left.pop(0).partition("=")
        changed[name] = value
    return _Env(left, changed) if left else None


# Finds allocators that the recorder cannot see: those inside of programs, and those with names of their own.
#
# The recorder stands before functions of shared libraries. What is linked into the program is called
# directly, so that its symbols are all that tells of it; a stripped program says nothing.

_OWN: Final = (
    *("malloc", "je_malloc", "_rjem_malloc", "rjem_malloc", "tc_malloc", "mi_malloc", "rpmalloc"),
    *("dlmalloc", "nedmalloc", "sn_malloc", "scalable_malloc", "runtime.mallocgc"),
)
"""The function that allocates, as allocators call it once they are linked into a program."""
_DIRECT: Final = (
    *("mallocx", "rallocx", "je_malloc", "je_mallocx", "tc_malloc", "tc_new", "scalable_malloc"),
    *("mi_malloc", "mi_calloc", "mi_realloc", "mi_new", "mi_heap_malloc", "mi_malloc_aligned"),
)
"""Functions of shared allocators besides those of C and C++."""
_NAMESPACE: Final = "dlmopen"
_LOCAL, _DEFAULT = 0, 0  # STB_LOCAL, STV_DEFAULT
_FUNCTION, _NO_TYPE = 2, 0  # STT_FUNC, STT_NOTYPE


class FileSymbol(NamedTuple):
    """A function in the symbol table of a file.

    :param defined: whether the file has it; otherwise it only calls it.
    :param hidden: whether no other file can replace it.
    """

    name: str
    defined: bool
    hidden: bool


def notes(program: str, libraries: Iterable[str]) -> Iterator[str]:
    """A note for each file with allocations that the recorder cannot see.

    :param program: path of the executable.
    :param libraries: paths of what it has loaded, without runtime libraries.
    """
    for path in (program, *libraries):
        name = os.path.basename(path)
        found = list(functions(path, {*_OWN, *_DIRECT, _NAMESPACE}))
        defined = [one for one in found if one.defined and (one.hidden or path == program)]
        own = {one.name for one in defined if one.name in _OWN}
        direct = {one.name for one in found if not one.defined and one.name in _DIRECT}
        if own:
            yield (
                f"{name} has an allocator of its own ({', '.join(sorted(own))}): what it does not take from "
                "the C library is not in the profile; link it to the shared library of the allocator to "
                "record it"
            )
        if direct:
            yield (
                f"{name} calls {', '.join(sorted(direct))}, which the recorder does not see: what these "
                "allocate is not in the profile; call malloc or new instead to record it"
            )
        if any(one.name == _NAMESPACE and not one.defined for one in found):
            yield (
                f"{name} calls {_NAMESPACE}: a library that it loads into a namespace of its own has a C "
                "library of its own, and what that allocates is not in the profile"
            )


def functions(path: str, names: Iterable[str]) -> Iterator[FileSymbol]:
    """The functions of these names in the symbol tables of a 64-bit ELF file; none for any other file."""
    with suppress(OSError, Damaged), open(path, "rb") as file:
        elf = ElfFile(file)
        for kind in (SYMBOLS, DYNAMIC_SYMBOLS):
            if (table := elf.symbols(kind)) is not None:
                yield from _functions(*table, {name.encode() for name in names})


def _functions(symbols: NDArray[Any], text: bytes, names: set[bytes]) -> Iterator[FileSymbol]:
    positions = {at: name for name in names for at in _ends(text, name)}
    for symbol in symbols[np.isin(symbols["name"], list(positions))] if positions else ():
        if int(symbol["info"]) & 0xF in (_FUNCTION, _NO_TYPE):
            hidden = int(symbol["info"]) >> 4 == _LOCAL or int(symbol["other"]) & 3 != _DEFAULT
            yield FileSymbol(positions[int(symbol["name"])].decode(), bool(symbol["section"]), hidden)


def _ends(text: bytes, name: bytes) -> Iterator[int]:
    """Where `name` is followed by the end of a string: names share their ends."""
    at = text.find(name + b"\0")
    while at >= 0:
        yield at
        at = text.find(name + b"\0", at + 1)
