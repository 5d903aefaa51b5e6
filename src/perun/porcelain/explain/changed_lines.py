"""The lines that a diff adds and removes, with their numbers on both sides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

from perun.plugin.api import FileDiff
from perun.porcelain.explain.data import Line

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_BUILD_NAMES: Final = frozenset(
    {"makefile", "gnumakefile", "cmakelists.txt", "meson.build", "meson_options.txt", "configure.ac",
     "cargo.toml", "cargo.lock", "go.mod", "go.sum", "pyproject.toml", "setup.py", "setup.cfg",
     "build.gradle", "pom.xml", "build", "build.bazel", "dockerfile"}
)  # fmt: skip
_BUILD_ENDS: Final = (".mk", ".cmake", ".am", ".ninja", ".bzl", ".gradle")
_SOURCE_ENDS: Final = frozenset(
    {".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".inl", ".py", ".rs", ".go", ".java", ".s"}
)


def lines_of(one: FileDiff) -> Iterator[Line]:
    """The lines of all hunks of the diff of a file, in its order."""
    old = new = 0
    for text in one.patch.split("\n"):
        if hunk := _HUNK.match(text):
            old, new = int(hunk[1]), int(hunk[2])
        elif not (old or new) or text.startswith("\\"):
            continue  # the head of the file, or "No newline at end of file"
        elif text.startswith("+"):
            yield Line("+", 0, new, text[1:])
            new += 1
        elif text.startswith("-"):
            yield Line("-", old, 0, text[1:])
            old += 1
        elif text.startswith(" "):
            yield Line(" ", old, new, text[1:])
            old, new = old + 1, new + 1


def within(lines: Iterable[Line], old: tuple[int, int], new: tuple[int, int]) -> list[Line]:
    """The lines that lie in the range of either side; ranges include both ends, (0, 0) has no line.

    Empty where none of them was added or removed.
    """
    found = [
        line
        for line in lines
        if (line.new and new[0] <= line.new <= new[1])
        or (line.mark == "-" and old[0] <= line.old <= old[1])
    ]
    return found if any(line.mark != " " for line in found) else []


def kind_of(path: str) -> str:
    """`build`, `source` or `data`: what a file of a project is for, by its name."""
    name = PurePosixPath(path).name.lower()
    if name in _BUILD_NAMES or name.endswith(_BUILD_ENDS):
        return "build"
    return "source" if PurePosixPath(name).suffix in _SOURCE_ENDS else "data"
