"""What a project may want to profile: executables and inputs in folders with telling names (manual 11.3)."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

EXECUTABLE_FOLDERS: Final = ("build", "_build", "dist")
WORKLOAD_FOLDERS: Final = ("workload", "workloads", "examples", "payloads")
MAX_FOUND: Final = 50
MAX_VISITED: Final = 50_000
"""Files and folders that are looked at in all; a larger project is searched in part."""

_SKIPPED: Final = frozenset(("node_modules", "__pycache__", "CMakeFiles", "site-packages", "meson-private"))
_NOT_A_PROGRAM: Final = re.compile(r".*\.(so|dylib|dll)(\.[0-9]+)*|.*\.(o|a|lo|la|obj|ko|pyc)")


class Candidates(NamedTuple):
    """What was found, as it is written in a job matrix, sorted; and how many more there are."""

    names: list[str]
    left_out: int
    folders: tuple[str, ...]


def find_executables(project_dir: Path) -> Candidates:
    """Executable programs and scripts, no libraries, within folders named build, _build or dist."""
    return _find(project_dir, EXECUTABLE_FOLDERS, _is_program)


def find_workloads(project_dir: Path) -> Candidates:
    """All files within folders named workload, workloads, examples or payloads."""
    return _find(project_dir, WORKLOAD_FOLDERS, lambda entry: entry.is_file())


def _find(project: Path, folders: tuple[str, ...], accept: Callable[[os.DirEntry[str]], bool]) -> Candidates:
    found = sorted(path for path, entry in _walk(project, folders) if _is_accepted(entry, accept))
    names = [shlex.quote(f"./{path}") for path in found]
    return Candidates(names[:MAX_FOUND], max(0, len(names) - MAX_FOUND), folders)


def _walk(project: Path, folders: tuple[str, ...]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Files below a folder with one of the names, with their path in the project; broad before deep.

    Hidden files and folders are skipped, and folders that are symbolic links, so there are no loops.
    """
    waiting = [("", False)]
    visited = 0
    for folder, wanted in waiting:
        for entry in _entries(project / folder):
            visited += 1
            if visited > MAX_VISITED:
                return
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith(".") or not _is_text(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED and not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
                    waiting.append((path, wanted or entry.name in folders))
            elif wanted:
                yield path, entry


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []  # a folder that may not be read has no candidates


def _is_text(path: str) -> bool:
    """Whether the name can be written in a configuration: UTF-8 without control characters."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return not any(ord(char) < 32 or ord(char) == 127 for char in path)


def _is_accepted(entry: os.DirEntry[str], accept: Callable[[os.DirEntry[str]], bool]) -> bool:
    try:
        return accept(entry)
    except OSError:
        return False


def _is_program(entry: os.DirEntry[str]) -> bool:
    if _NOT_A_PROGRAM.fullmatch(entry.name) or not entry.is_file() or not entry.stat().st_mode & 0o111:
        return False
    with open(entry.path, "rb") as file:
        start = file.read(4)
    return start == b"\x7fELF" or start[:2] == b"#!"
