"""Flags of the preprocessor from a `compile_commands.json`, the compilation database of build systems."""

from __future__ import annotations

import json
import os
import shlex
from typing import Any, NamedTuple

from perun.errors import UsageError
from perun.regular import read_regular

LARGEST_DATABASE = 256 << 20
"""Bytes of a compilation database that is read."""

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


class Flags(NamedTuple):
    """The folder in which a file is compiled, and those of its flags that the preprocessor obeys."""

    folder: str | None
    flags: tuple[str, ...]


def flags_for(path: str, database: str) -> Flags | None:
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
        return Flags(folder if os.path.isdir(folder) else None, tuple(_chosen(words[1:])))
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
