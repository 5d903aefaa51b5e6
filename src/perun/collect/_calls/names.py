"""Names of functions: which of them a user means, which are of the program's own source, names of C++."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

_RUNTIME: Final = re.compile(
    r"_start|_init|_fini|(de)?register_tm_clones|__do_global_(c|d)tors_aux|frame_dummy|__libc_csu_\w+"
    r"|_dl_relocate_static_pie|__(x86|i686)\.\w+|__cyg_profile_func_\w+|_GLOBAL__sub_[ID]_.*"
    r"|__static_initialization_and_destruction_0|__clang_call_terminate|atexit|at_quick_exit|__stack_chk_\w+"
)
"""Functions that the compiler and the C library add to every program."""
_LIBRARY_NAMESPACES: Final = ("std::", "__gnu_cxx::", "__cxxabiv1::", "operator new", "operator delete")


class Named(Protocol):
    """A function with its names for the linker and in the source."""

    @property
    def symbol(self) -> str: ...

    @property
    def name(self) -> str: ...


F = TypeVar("F", bound=Named)


def is_own(symbol: str, name: str) -> bool:
    """Whether a function, with its names for the linker and in the source, is of the program's own source."""
    if _RUNTIME.fullmatch(symbol) or _RUNTIME.fullmatch(name.partition("(")[0]):
        return False
    return not plain_name(name).startswith(_LIBRARY_NAMESPACES)


def match(functions: Sequence[F], wanted: str) -> list[F]:
    """The functions that a name means, several if they are overloaded; or those that match a pattern.

    A name is a symbol, or a name of the source with or without parameters, template arguments and
    namespaces; the most exact of these spellings that names any function counts. With `*`, `?` or `[` it is
    a pattern.
    """
    import fnmatch

    if any(letter in wanted for letter in "*?[") and not wanted.startswith("operator"):
        pattern = re.compile(fnmatch.translate(wanted))
        return [
            function
            for function in functions
            if pattern.match(function.symbol)
            or pattern.match(function.name)
            or pattern.match(plain_name(function.name))
        ]
    squeezed = wanted.replace(" ", "")
    spellings = (
        lambda function: function.symbol,
        lambda function: function.name.replace(" ", ""),
        lambda function: plain_name(function.name).replace(" ", ""),
        lambda function: without_arguments(plain_name(function.name)).replace(" ", ""),
        lambda function: without_arguments(plain_name(function.name)).rpartition("::")[2],
    )
    for spelling in spellings:
        found = [function for function in functions if spelling(function) == squeezed]
        if found:
            return found
    return []


def plain_name(name: str) -> str:
    """The name without parameters and result type: `void ns::add<int>(int) const` is `ns::add<int>`."""
    depth, end, start = 0, len(name), 0
    # Parentheses that are part of a name become others of the same length, so that positions stay valid.
    guarded = name.replace("(anonymous namespace)", "{anonymous namespace}").replace(
        "operator()", "operator[]"
    )
    for position, letter in enumerate(guarded):
        if letter in "<{" and not guarded.startswith("operator<", max(0, position - 8)):
            depth += 1
        elif letter in ">}" and depth and guarded[position - 1] != "-":
            depth -= 1
        elif letter == "(" and not depth:
            end = position
            break
        elif (
            letter == " " and not depth and not guarded[:position].rpartition("::")[2].startswith("operator")
        ):
            start = position + 1
    return name[start:end]


def without_arguments(name: str) -> str:
    """The name without template arguments: `ns::Bag<int>::add` is `ns::Bag::add`."""
    if "operator" in name or "<" not in name:
        return name
    depth, kept = 0, []
    for letter in name:
        depth += letter == "<"
        if not depth:
            kept.append(letter)
        depth -= letter == ">"
    return "".join(kept)


def demangled(symbols: Iterable[str]) -> dict[str, str]:
    """The name in the source of each symbol; a symbol that is not a mangled name of C++ stays as it is."""
    names = {symbol: symbol for symbol in symbols}
    mangled = [symbol for symbol in names if symbol.startswith("_Z")]
    if mangled:
        names.update(zip(mangled, _demangle(mangled), strict=True))
    return names


def _demangle(symbols: list[str]) -> list[str]:
    import ctypes

    try:
        library = ctypes.CDLL("libstdc++.so.6")
        demangle = library.__cxa_demangle
    except (OSError, AttributeError):
        return _filt(symbols)
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free.restype = None
    demangle.restype = ctypes.c_void_p
    demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    names = []
    for symbol in symbols:
        status = ctypes.c_int()
        address = demangle(symbol.encode(), None, None, ctypes.byref(status))
        text = ctypes.string_at(address).decode("utf-8", "replace") if address else symbol
        if address:
            free(address)
        names.append(text)
    return names


def _filt(symbols: list[str]) -> list[str]:
    import subprocess

    try:
        done = subprocess.run(
            ["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=False
        )
    except OSError:
        return symbols
    names = done.stdout.splitlines()
    return names if len(names) == len(symbols) else symbols
