"""Names of functions: which of them a user means, which are of the program's own source, of C++ and Rust.

Rust has two ways to write a name into a symbol: that of C++ with a hash as its last part, and its own one,
which begins with `_R` (RFC 2603). Neither hashes nor those of crates are shown.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

from perun.core.process import programs

_RUNTIME: Final = re.compile(
    r"_start|_init|_fini|(de)?register_tm_clones|__do_global_(c|d)tors_aux|frame_dummy|__libc_csu_\w+"
    r"|_dl_relocate_static_pie|__(x86|i686)\.\w+|__cyg_profile_func_\w+|_GLOBAL__sub_[ID]_.*"
    r"|__static_initialization_and_destruction_0|__clang_call_terminate|atexit|at_quick_exit|__stack_chk_\w+"
)
"""Functions that the compiler and the C library add to every program."""
_LIBRARY_NAMESPACES: Final = ("std::", "__gnu_cxx::", "__cxxabiv1::", "operator new", "operator delete")
_GO_LIBRARY: Final = re.compile(
    r"(archive|bufio|bytes|cmp|compress|container|context|crypto|database|debug|embed|encoding|errors|expvar"
    r"|flag|fmt|go|hash|html|image|index|internal|io|iter|log|maps|math|mime|net|os|path|plugin|reflect|regexp"
    r"|runtime|slices|sort|strconv|strings|structs|sync|syscall|testing|text|time|type|unicode|unique|unsafe"
    r"|vendor|weak|_cgo\w*)[./:]"
)
"""Packages of Go's own library."""
_COPY: Final = re.compile(r"\.(constprop|isra|lto_priv|llvm|localalias)\b")
_CLONE_TEXT: Final = re.compile(r" (\[clone [^]]*\]|\(\.[^)]*\))")
_CLONE: Final = re.compile(r"\.(constprop|isra|part|cold|lto_priv|llvm|localalias)\b")
_RUST_SYMBOL: Final = re.compile(r"_R[A-Z].*|_ZN.*17h[0-9a-f]{16}E(\..*)?")
_RUST_HASH: Final = re.compile(r"::h[0-9a-f]{16}$")
_RUST_CRATE: Final = re.compile(r"\[[0-9a-f]{1,16}\]")
_RUST_ESCAPES: Final = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}
_RUST_ESCAPE: Final = re.compile(r"\$(?:u([0-9a-f]{1,6})|([A-Z]{1,2}))\$")
_RUST_LIBRARY: Final = re.compile(
    r"(alloc|core|std|hashbrown|addr2line|gimli|object|miniz_oxide|adler2?|rustc_demangle|memchr|cfg_if|libc"
    r"|panic_unwind|panic_abort|unwind|compiler_builtins|std_detect|__rustc)(::|\b)"
    r"|rust_(begin_unwind|panic|eh_personality)|__rust_|__rdl_|__rg_"
)
"""Crates of Rust's own libraries, and those that they are built of."""
_RUST_PRIMITIVE: Final = re.compile(r"([iu](8|16|32|64|128|size)|f(32|64)|bool|char|str|_)\b|[])!]|<")
_RUST_SUFFIX: Final = re.compile(r"(?<=E)\.llvm\.[0-9A-Fa-f]+$")
_RUST_INHERENT: Final = re.compile(r"<(\w+::(?:(?! as ).)*)>(::\w.*)")
"""A function of a type itself, not of a trait: `<list::List<u8>>::push`."""
_RUST_TYPE: Final = re.compile(r"(<|&|\*(const|mut) |mut |dyn |\[|\()+")
"""What may stand before the path of a type."""


class NamedFunction(Protocol):
    """A function with its names for the linker and in the source."""

    @property
    def symbol(self) -> str:
        """The name for the linker."""
        ...

    @property
    def name(self) -> str:
        """The name in the source."""
        ...


F = TypeVar("F", bound=NamedFunction)


def is_own(symbol: str, name: str) -> bool:
    """Whether a function, with its names for the linker and in the source, is of the program's own source."""
    if _RUNTIME.fullmatch(symbol) or _RUNTIME.fullmatch(name.partition("(")[0]):
        return False
    if _GO_LIBRARY.match(symbol) and not _CLONE.search(symbol):
        return False
    if is_rust(symbol) or symbol.startswith(("rust_", "__rust_", "__rdl_", "__rg_")):
        return not is_of_rust_library(name)
    return not plain_name(name).startswith(_LIBRARY_NAMESPACES)


def is_called_by_go(symbol: str) -> bool:
    """Whether a function of a program of Go is called in Go's own way, unlike those written in assembly."""
    return "." in symbol and not symbol.endswith(".abi0")


def is_rust(symbol: str) -> bool:
    """Whether a symbol is the name of a function of Rust."""
    return bool(_RUST_SYMBOL.fullmatch(symbol))


def is_of_rust_library(name: str) -> bool:
    """Whether a function of Rust is of its libraries: `alloc::vec::Vec<T>::push`, `<u8 as core::Any>::id`."""
    begin = _RUST_TYPE.match(name)
    start = begin.end() if begin else 0
    if _RUST_LIBRARY.match(name, start):
        return True
    if not _RUST_PRIMITIVE.match(name, start):
        return False
    trait = name.find(" as ")  # of a type that the language has itself, the trait tells whose function it is
    return trait < 0 or is_of_rust_library(name[trait + 4 :])


def match(functions: Sequence[F], wanted: str) -> list[F]:
    """The functions that a name means, several if they are overloaded; or those that match a pattern.

    A name is a symbol, or a name of the source with or without parameters, template arguments and
    namespaces; the most exact of these spellings that names any function counts. With `*`, `?` or `[` it is
    a pattern.
    """
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
    ending = f"::{squeezed}"
    return [one for one in functions if without_arguments(plain_name(one.name)).endswith(ending)]


def source_name(symbol: str, name: str) -> tuple[str, bool]:
    """The name in the source of a function, and whether it is a copy of which the compiler may have changed
    the parameters.

    :param name: what :func:`demangled` makes of the symbol.
    """
    is_copy = bool(_COPY.search(symbol))
    plain = _CLONE_TEXT.sub("", name)
    return (symbol[: symbol.index(".")] if is_copy and plain == symbol else plain), is_copy


def profile_name(name: str) -> str:
    """The name of a function in a profile, without the result type that templates have in their names."""
    start = name.find(plain_name(name))
    return name[start:] if start > 0 else name


def plain_name(name: str) -> str:
    """The name without parameters and result type: `void ns::add<int>(int) const` is `ns::add<int>`."""
    if ".(" in name:  # a method of Go: `main.(*List).push`
        return name
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
    """The name in the source of each symbol; one that is no mangled name of C++ or Rust stays as it is."""
    names = {symbol: symbol for symbol in symbols}
    mangled = [symbol for symbol in names if symbol.startswith("_Z")]
    if mangled:
        whole = [_RUST_SUFFIX.sub("", symbol) for symbol in mangled]
        names.update(zip(mangled, _demangle(whole), strict=True))
    own = [symbol for symbol in names if symbol.startswith("_R")]
    if own:
        names.update(zip(own, _filt(own), strict=True))
    for symbol in names:
        if symbol.startswith(("_R", "_ZN")) and is_rust(symbol):
            names[symbol] = _of_rust(names[symbol])
    return names


def _of_rust(name: str) -> str:
    """A name of Rust without the hashes of its version and of crates, and with the signs of types."""
    name = _RUST_HASH.sub("", name)
    if "$" in name or ".." in name:
        name = _RUST_ESCAPE.sub(_unescaped, name.replace("..", "::")).replace("::_<", "::<").removeprefix("_")
    name = _RUST_CRATE.sub("", name)
    inherent = _RUST_INHERENT.fullmatch(name)
    return "".join(inherent.groups()) if inherent and _is_closed(inherent[1]) else name


def _is_closed(name: str) -> bool:
    """Whether each `<` of a name has its `>`, and none is left."""
    depth = 0
    for letter in name:
        depth += (letter == "<") - (letter == ">")
        if depth < 0:
            return False
    return not depth


def _unescaped(found: re.Match[str]) -> str:
    code, sign = found.groups()
    return chr(int(code, 16)) if code and int(code, 16) < 0x110000 else _RUST_ESCAPES.get(sign, found[0])


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
    try:
        done = programs.run(["c++filt"], given="\n".join(symbols).encode("utf-8", "surrogateescape"))
    except OSError:
        return symbols
    names = done.stdout.decode("utf-8", "surrogateescape").splitlines()
    return names if len(names) == len(symbols) else symbols
