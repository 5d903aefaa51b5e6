"""Running the preprocessor of the C compiler."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import shutil
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.bounds.front.unit import ReadOptions, UnreadablePart
from perun.bounds.sources import LARGEST_DATABASE
from perun.core.errors import CollectorUnavailable, UsageError
from perun.core.process import programs
from perun.core.regular import read_regular

# Flags of the preprocessor from a `compile_commands.json`, the compilation database of build systems.

_WITH_VALUE = (
    "-I",
    "-D",
    "-U",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "--sysroot",
    "-isysroot",
)
_ALONE = ("-std=", "-m32", "-m64", "-nostdinc", "-ansi", "-pthread", "-fopenmp", "--sysroot=", "-undef")


class PreprocessorFlags(NamedTuple):
    """The folder in which a file is compiled, and those of its flags that the preprocessor obeys."""

    folder: str | None
    flags: tuple[str, ...]


def flags_for(path: str, database: str) -> PreprocessorFlags | None:
    """What a compilation database says of a file, or None where it does not mention it.

    :raises UsageError: if the database cannot be read.
    """
    wanted = os.path.realpath(path)
    for entry in _entries(database):
        folder = str(entry.get("directory", "."))
        folder = os.path.join(os.path.dirname(os.path.abspath(database)), folder)
        if os.path.realpath(os.path.join(folder, str(entry.get("file", "")))) != wanted:
            continue
        arguments = entry.get("arguments")
        words = [str(one) for one in arguments] if isinstance(arguments, list) else _split(entry, database)
        return PreprocessorFlags(folder if os.path.isdir(folder) else None, tuple(_chosen(words[1:])))
    return None


def _split(entry: dict[str, Any], database: str) -> list[str]:
    try:
        return shlex.split(str(entry.get("command", "")))
    except ValueError as error:
        raise UsageError(f"A command of '{database}' cannot be split into words: {error}.") from error


def _entries(database: str) -> list[dict[str, Any]]:
    hint = "CMake and bear write it: a list of objects with 'directory', 'file' and 'command' or 'arguments'."
    try:
        entries = json.loads(read_regular(os.path.realpath(database), LARGEST_DATABASE))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"'{database}' cannot be read as a compilation database: {error}.", hint) from error
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise UsageError(f"'{database}' is no compilation database.", hint)
    return entries


def _chosen(words: list[str]) -> list[str]:
    found: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word in _WITH_VALUE and at + 1 < len(words):
            found += words[at : at + 2]
            at += 1
        elif word not in _WITH_VALUE and word.startswith((*_ALONE, *_WITH_VALUE)):
            found.append(word)
        at += 1
    return found


# Substitutes for headers of the C library, for machines that have a compiler and no headers.
#
# They declare what loops depend on: the signs of types, the values of limits, and truth.

_INTEGERS = "".join(
    f"typedef signed {kind} int{bits}_t; typedef unsigned {kind} uint{bits}_t;\n"
    f"typedef signed {kind} int_least{bits}_t; typedef unsigned {kind} uint_least{bits}_t;\n"
    f"#define INT{bits}_MAX {2 ** (bits - 1) - 1}{suffix}\n#define INT{bits}_MIN (-INT{bits}_MAX - 1)\n"
    f"#define UINT{bits}_MAX {2**bits - 1}U{suffix}\n"
    for bits, kind, suffix in ((8, "char", ""), (16, "short", ""), (32, "int", ""), (64, "long", "L"))
)
_SIZES = (
    "#ifndef PERUN_SIZES\n#define PERUN_SIZES\n#define NULL ((void *)0)\n"
    "typedef unsigned long size_t; typedef long ssize_t; typedef long ptrdiff_t; typedef int wchar_t;\n"
    "#endif\n"
)
_STDINT = (
    "#ifndef PERUN_STDINT\n#define PERUN_STDINT\n" + _INTEGERS + "typedef long intptr_t, intmax_t;\n"
    "typedef unsigned long uintptr_t, uintmax_t;\n#define SIZE_MAX 18446744073709551615UL\n#endif\n"
)
_LIMITS = """
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-LONG_MAX - 1L)
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1LL)
#define ULLONG_MAX 18446744073709551615ULL
#define PATH_MAX 4096
"""

CONTENT: Final[dict[str, str]] = {
    "stddef.h": _SIZES + "#define offsetof(type, member) __builtin_offsetof(type, member)\n",
    "stdint.h": _STDINT,
    "inttypes.h": _STDINT,
    "limits.h": _LIMITS,
    "stdbool.h": "#define bool _Bool\n#define true 1\n#define false 0\n",
    "stdlib.h": _SIZES + "#define EXIT_SUCCESS 0\n#define EXIT_FAILURE 1\n#define RAND_MAX 2147483647\n"
    "void *malloc(size_t n); void *calloc(size_t n, size_t m); void *realloc(void *p, size_t n);\n"
    "void free(void *p);\n"
    "int abs(int n); int atoi(const char *s); void exit(int n); void abort(void); int rand(void);\n",
    "string.h": _SIZES + "size_t strlen(const char *s); int memcmp(const void *p, const void *q, size_t n);\n"
    "int strcmp(const char *s, const char *t);\n",
    "stdio.h": _SIZES
    + "#define EOF (-1)\ntypedef struct _perun_file FILE;\nextern FILE *stdin, *stdout, *stderr;\n",
    "stdarg.h": "typedef __builtin_va_list va_list;\n#define va_start(ap, last) __perun_va_start(&ap)\n"
    "#define va_end(ap) __perun_va_end(&ap)\n#define va_arg(ap, type) __builtin_va_arg(ap, type)\n"
    "#define va_copy(to, from) __perun_va_copy(&to, from)\n",
    "assert.h": "#define assert(condition) ((void)0)\n",
    "errno.h": "extern int errno;\n",
    "ctype.h": "",
    "math.h": "",
    "sys/types.h": _SIZES + _STDINT + "typedef long off_t; typedef long time_t; typedef int pid_t;\n",
    "time.h": _SIZES,
    "unistd.h": _SIZES,
}
"""By the name that `#include` has for it."""


_COMPILERS = ("cc", "gcc", "clang")
_MISSING = re.compile(
    r"^(?P<file>[^\n]+?):(?P<line>\d+):(?:\d+:)? fatal error: "
    r"'?(?P<header>[^\n:']+?)'?(?:: No such file or directory| file not found)",
    re.MULTILINE,
)
_ERROR = re.compile(
    r"^(?P<file>[^\n]+?):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<reason>[^\n]+)", re.MULTILINE
)
_UNIVERSAL = re.compile(r"\\U(000[0-9a-f]{5})")
"""How gcc writes letters of names that are not ASCII."""
_MOST_MISSING = 500
_DEPTH = 8
"""How many folders deep substitutes for headers lie: an `#include` may begin with as many `../`."""
_FLAGS = ("-E", "-x", "c", "-w", "-U_FORTIFY_SOURCE", "-D__NO_INLINE__", "-D__NO_CTYPE")


class PreprocessorFailed(Exception):
    """The preprocessor was ended, or did not end in time; why, as a sentence."""


class PreprocessedText(NamedTuple):
    """Text with line markers, and what was wrong."""

    text: str
    problems: tuple[UnreadablePart, ...]


def missing() -> tuple[str, str]:
    """What is missing to read C sources, and how it is installed; two empty texts where nothing is."""
    if any(shutil.which(name) for name in _COMPILERS):
        return "", ""
    return (
        "No C compiler is installed, and its preprocessor is needed to read C sources.",
        "Install gcc or clang, such as by 'apt install gcc'.",
    )


def compiler() -> str:
    """The C compiler whose preprocessor is used.

    :raises CollectorUnavailable: if there is none.
    """
    for name in _COMPILERS:
        path = shutil.which(name)
        if path:
            return path
    raise CollectorUnavailable(*missing())


def preprocess(path: str, options: ReadOptions) -> PreprocessedText:
    """A source file with its macros expanded and its headers included.

    A header that does not exist is replaced by an empty one, and listed in `problems`; so are other errors of
    the preprocessor, such as `#error`, and that the compilation database has no flags for it.

    :raises PreprocessorFailed: if it takes too long, or needs more than the limits of this process.
    """
    given = flags_for(path, options.compile_commands) if options.compile_commands else None
    flags = [*(given.flags if given else ()), *(f"-I{os.path.abspath(one)}" for one in options.include)]
    flags += [f"-D{one}" for one in options.define]
    folder = given.folder if given else None
    source = os.path.abspath(path) if folder or path.startswith("-") else path
    with tempfile.TemporaryDirectory(prefix="perun-headers-") as scratch:
        deep = Path(scratch, *("d" * _DEPTH))
        deep.mkdir(parents=True)
        command = [compiler(), *_FLAGS, *flags, "-idirafter", str(deep), source]
        missing: dict[str, UnreadablePart] = {}
        while True:
            code, text, said = _output(command, folder, options.timeout)
            absent = _MISSING.search(said)
            if (
                absent is None
                or len(missing) > _MOST_MISSING
                or not _substitute(deep, absent["header"], missing)
            ):
                break
            missing[absent["header"]] = UnreadablePart(
                _seen(absent["file"], folder), int(absent["line"]), f"there is no header '{absent['header']}'"
            )
        errors = list(_ERROR.finditer(said))
        if code and not errors:
            last = said.strip().rpartition("\n")[2]
            raise PreprocessorFailed(f"the preprocessor failed: {last or f'it ended with status {code}'}")
        problems = list(_without_flags(path, options)) if given is None else []
        problems += [one for name, one in missing.items() if name not in CONTENT]
        problems += [
            UnreadablePart(_seen(one["file"], folder), int(one["line"]), one["reason"].strip())
            for one in errors
        ]
        text = text.replace("\r", " ").replace("\0", " ")
        return PreprocessedText(
            _UNIVERSAL.sub(lambda match: chr(int(match.group(1), 16)), text), tuple(problems)
        )


def _output(command: Sequence[str], folder: str | None, timeout: float) -> tuple[int, str, str]:
    """The exit code of the preprocessor, its output and its messages, which the limits of files hold for."""
    environ = {**os.environ, "LC_ALL": "C"}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            code = programs.run(
                command, cwd=folder, environ=environ, stdout=output, stderr=errors, timeout=timeout
            ).code
        except programs.TimeoutExpired:
            raise PreprocessorFailed(
                f"the preprocessor did not end within {timeout:g} s: the source may include a device or a "
                "pipe, or have macros that grow without end; --timeout gives it more"
            ) from None
        if os.fstat(output.fileno()).st_size >= (limit := resource.getrlimit(resource.RLIMIT_FSIZE)[0]) > 0:
            raise PreprocessorFailed(f"it has more than {limit >> 20} MiB when it is preprocessed")
        output.seek(0)
        errors.seek(0)
        return code, output.read().decode("utf-8", "replace"), errors.read().decode("utf-8", "replace")


def _without_flags(path: str, options: ReadOptions) -> Iterator[UnreadablePart]:
    """That there are no flags of a source, where those of others are known."""
    if options.compile_commands:
        reason = f"{options.compile_commands} does not list it, so it is read without the flags of a build"
        yield UnreadablePart(path, 1, reason)


def _seen(file: str, folder: str | None) -> str:
    """A file that the preprocessor names, from where it was started."""
    return os.path.join(folder, file) if folder else file


def _substitute(deep: Path, header: str, missing: dict[str, UnreadablePart]) -> bool:
    """Put a substitute where the preprocessor finds it; false where it cannot be found."""
    if header in missing or os.path.isabs(header) or header.count("../") >= _DEPTH:
        return False
    target = Path(os.path.normpath(deep / header))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(CONTENT.get(header, ""), encoding="utf-8")
    return True


# Tokens of preprocessed C, and the places in the original files that line markers give them.

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\f\v\r\n]+)
    | (?P<name>[A-Za-z_$\x80-\U0010ffff][\w$]*(?!["'\w$]))
    | (?P<marker>(?<![^\n])[ \t]*\#[^\n]*)
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
    | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.]|'(?=\w))*)
    | (?P<mark>\.\.\.|->|\+\+|--|<<=|>>=|[-+*/%&|^=!<>]=|<<|>>|&&|\|\||\S)
    """,
    re.VERBOSE,
)
_LINE_MARKER = re.compile(
    r'^[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)[ \t]+"((?:\\.|[^"\\\n])*)"([ \t0-9]*)', re.MULTILINE
)
_BODY = re.compile(r"(?<=\)\n)\{\n(?:(?!\}).*\n)*?\}\n")
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = frozenset(OPENING.values())


class Token(NamedTuple):
    """`kind` is one of name, number, string, char and mark; `start` the offset of the text."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset behind the token."""
        return self.start + len(self.text)


def tokens(text: str) -> list[Token]:
    """All tokens but white space, line markers and pragmas."""
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind != "space" and kind != "marker":
            found.append(Token(kind or "", match.group(), match.start()))
    return found


def partners(sequence: list[Token]) -> dict[int, int]:
    """For the index of each opening bracket that of the one that closes it; unmatched ones are absent.

    A closing bracket ends what was opened inside and never closed: one bad place does not spoil the rest.
    """
    found: dict[int, int] = {}
    open_: list[int] = []
    for index, token in enumerate(sequence):
        if token.kind != "mark":
            continue
        if token.text in OPENING:
            open_.append(index)
        elif token.text in CLOSING:
            for depth in range(len(open_) - 1, -1, -1):
                if OPENING[sequence[open_[depth]].text] == token.text:
                    found[open_[depth]] = index
                    del open_[depth:]
                    break
    return found


def without_system_bodies(text: str) -> str:
    """Text whose inline functions of system headers, thousands for vector instructions, are only declared.

    They are found by their layout, a body between braces at the begin of lines: this is not worth tokens.
    """
    parts = []
    done = 0
    is_system = False
    for match in _LINE_MARKER.finditer(text):
        part = text[done : match.start()]
        parts.append(_BODY.sub(_declared, part) if is_system else part)
        is_system = "3" in match.group(3).split()
        done = match.start()
    return "".join([*parts, text[done:]])


def _declared(match: re.Match[str]) -> str:
    return ";" + "\n" * match.group().count("\n")


class SourceLocation(NamedTuple):
    """A file, as line markers name it, and a 1-based line.

    `depth` is 0 in the source itself, 1 in what it includes and so on; `system` tells headers of the system.
    """

    file: str
    line: int
    depth: int = 0
    system: bool = False


class LineMap:
    """Where offsets in preprocessed text come from; it begins at `start`."""

    def __init__(self, text: str, start: SourceLocation) -> None:
        self._text = text
        self._starts = [0]
        self._marks = [start]
        depth = start.depth
        for match in _LINE_MARKER.finditer(text):
            flags = match.group(3).split()
            depth = max(0, depth + ("1" in flags) - ("2" in flags))
            self._starts.append(min(match.end() + 1, len(text)))
            self._marks.append(
                SourceLocation(unescaped(match.group(2)), int(match.group(1)), depth, "3" in flags)
            )

    def of(self, offset: int) -> SourceLocation:
        """The place of an offset."""
        at = bisect_right(self._starts, offset) - 1
        mark = self._marks[at]
        return mark._replace(line=mark.line + self._text.count("\n", self._starts[at], offset))


def unescaped(name: str) -> str:
    """A file name as a line marker writes it, without its escapes."""
    if "\\" not in name:
        return name
    raw = _ESCAPE.sub(lambda match: _character(match.group(1)), name)
    return raw.encode("latin-1", "replace").decode("utf-8", "replace") if max(raw) < "\u0100" else raw


def _character(escape: str) -> str:
    return chr(int(escape, 8)) if len(escape) == 3 else escape
