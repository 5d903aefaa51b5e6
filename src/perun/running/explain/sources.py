"""The sources of both versions: which functions are the project's, where they lie, and what changed there."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from perun.plugin.api import FileDiff, MinorVersion
from perun.repository.repository import Repository
from perun.running.explain import functions as debug_lines
from perun.running.explain.costs import FunctionKey
from perun.running.explain.data import Line, OtherFile
from perun.running.explain.functions import DebugLines, Range, defined_by, functions_of, words_of

# The lines that a diff adds and removes, with their numbers on both sides.

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
        if (line.new and new[0] <= line.new <= new[1]) or (line.mark == "-" and old[0] <= line.old <= old[1])
    ]
    return found if any(line.mark != " " for line in found) else []


def kind_of(path: str) -> str:
    """`build`, `source` or `data`: what a file of a project is for, by its name."""
    name = PurePosixPath(path).name.lower()
    if name in _BUILD_NAMES or name.endswith(_BUILD_ENDS):
        return "build"
    return "source" if PurePosixPath(name).suffix in _SOURCE_ENDS else "data"


MOST_SOURCES: Final = 100
"""Files that are read to find functions of a program without debug information."""
MOST_LINES: Final = 20
"""Changed lines that are told of a file which says how the program is built."""
_LIBRARY: Final = re.compile(r"^(?:std|__gnu_cxx|__cxxabiv1)::|^operator (?:new|delete)|^_start$|^\(")


class Found(NamedTuple):
    """Where a function is, and what changed there.

    :param path: in the newer version that has it. :param range: in that version; None if it is not known.
    :param lines: of the diff within it. :param near: changed lines elsewhere that define what it uses.
    """

    path: str
    range: Range | None
    lines: tuple[Line, ...]
    near: tuple[tuple[str, Line], ...]


NOWHERE = Found("", None, (), ())


class _Version:
    """The sources of one version."""

    def __init__(self, repo: Repository, version: MinorVersion) -> None:
        self._repo = repo
        self._version = version
        self._texts: dict[str, str] = {}
        self._functions: dict[str, list[Range]] = {}
        self.debug: DebugLines = debug_lines.NONE
        self.programs: set[str] = set()
        self.changed: set[str] = set()

    @cached_property
    def paths(self) -> dict[str, list[str]]:
        """The paths of all files by their base name."""
        found: dict[str, list[str]] = defaultdict(list)
        for path in self._repo.vcs.files(self._version.checksum):
            found[PurePosixPath(path).name].append(path)
        return found

    def text(self, path: str) -> str:
        """The content of a file; empty where there is none."""
        if path not in self._texts:
            content = self._repo.vcs.source(self._version.checksum, path) if path else None
            self._texts[path] = (content or b"").decode("utf-8", "replace")
        return self._texts[path]

    def functions(self, path: str) -> list[Range]:
        """The functions of a file, by the debug information where it has them."""
        if path not in self._functions:
            base = PurePosixPath(path).name
            only = len(self.paths.get(base, ())) == 1  # debug information may name the path otherwise
            known = self.debug.ranges if only else {}
            self._functions[path] = (
                [_wider(one, known.get((base, one.name))) for one in functions_of(path, self.text(path))]
                if path
                else []
            )
        return self._functions[path]

    def find(self, place: FunctionKey, lines: Sequence[int]) -> tuple[str, Range | None]:
        """The path of a function and its lines; an empty path where no file is meant.

        :param lines: some that it has; by these a function without a name is found.
        """
        candidates = self.candidates(place)
        for path in candidates:
            for one in self.functions(path):
                if is_named(one.name, place.name):
                    return path, one
            inside = [one for one in self.functions(path) if any(one.first <= n <= one.last for n in lines)]
            if inside and place.name.startswith("<"):
                return path, inside[-1]
        return (candidates[0], None) if len(candidates) == 1 else ("", None)

    def candidates(self, place: FunctionKey) -> list[str]:
        """The files that the source of a place may mean."""
        if place.source in self.programs:
            return self._some_sources
        return self.paths.get(place.source, []) if place.source else []

    @cached_property
    def _some_sources(self) -> list[str]:
        """Where functions are looked for whose source is not known: changed files first, and not too many."""
        every = [path for paths in self.paths.values() for path in paths if kind_of(path) == "source"]
        return sorted(every, key=lambda path: path not in self.changed)[:MOST_SOURCES]


class Sources:
    """Both versions, and the diff between them.

    :param programs: what is run on each side, for their debug information; None where that is not known.
    :ivar knows: whether the version control told the diff.
    """

    def __init__(
        self, repo: Repository, base: MinorVersion, head: MinorVersion, programs: Sequence[Path | None]
    ) -> None:
        found = repo.vcs.difference(base.checksum, head.checksum)
        self.knows = found is not None
        self.diff: list[FileDiff] = found or []
        self._sides = _Version(repo, base), _Version(repo, head)
        self.program_names = {path.name for path in programs if path is not None}
        self._lines = {(one.old, one.new): list(lines_of(one)) for one in self.diff}
        for number, (side, program) in enumerate(zip(self._sides, programs, strict=True)):
            side.changed = {one[number] for one in self.diff}
            side.programs = self.program_names
            if program is not None:
                side.debug = debug_lines.read(program, set(side.paths))

    @property
    def has_debug_lines(self) -> bool:
        """Whether both programs have debug information."""
        return all(side.debug.has_lines for side in self._sides)

    def is_own(self, place: FunctionKey) -> bool:
        """Whether the function is one of the project: of one of its files, or of its program itself."""
        if place.source in self.program_names:
            return not _LIBRARY.search(_head_of(place.name))
        return bool(place.source) and any(place.source in side.paths for side in self._sides)

    def is_inlined(self, place: FunctionKey) -> bool:
        """Whether one of the versions has no code of the function, as all its calls are inlined."""
        return any(place.name in side.debug.inlined for side in self._sides)

    def inlined_between(self) -> list[str]:
        """Functions that have code of their own in one version, and are inlined in the other."""
        base, head = (side.debug for side in self._sides)
        return sorted(base.inlined ^ head.inlined)

    def find(self, place: FunctionKey, seen: Sequence[Sequence[int]] = ((), ())) -> Found:
        """Where a function is, and which changed lines belong to it.

        :param seen: lines of it that a profile of either version has.
        """
        (old_path, old), (new_path, new) = (
            side.find(place, lines) for side, lines in zip(self._sides, seen, strict=True)
        )
        path = new_path or old_path
        if not path:
            return NOWHERE
        ranges = [(one.first, one.last) if one else (0, -1) for one in (old, new)]
        lines: list[Line] = []
        for (before, after), found in self._lines.items():
            if (old_path and before == old_path) or (new_path and after == new_path):
                lines += within(found, *ranges)
        return Found(path, new or old, tuple(lines), self._near(old_path, old, new_path, new))

    @cached_property
    def changed_functions(self) -> list[FunctionKey]:
        """The functions that lines of the diff are in, in its order."""
        found: dict[FunctionKey, None] = {}
        for one in self.diff:
            for number, path in enumerate(one[:2]):
                for body in self._sides[number].functions(path) if kind_of(path) == "source" else ():
                    inside, outside = (body.first, body.last), (0, -1)
                    ranges = (outside, inside) if number else (inside, outside)
                    if within(self._lines[one.old, one.new], *ranges):
                        found[FunctionKey(body.name, PurePosixPath(path).name)] = None
        return list(found)

    def named(self, name: str) -> set[FunctionKey]:
        """The functions of that name, by the debug information and the diff."""
        known = {key for side in self._sides for key in side.debug.ranges if is_named(key[1], name)}
        changed = {one for one in self.changed_functions if is_named(one.name, name)}
        return {FunctionKey(name, base) for base, _ in known} | {
            FunctionKey(name, one.source) for one in changed
        }

    def _near(
        self, old_path: str, old: Range | None, new_path: str, new: Range | None
    ) -> tuple[tuple[str, Line], ...]:
        """Changed definitions outside of functions whose names the function uses."""
        words: set[str] = set()
        for side, path, own in zip(self._sides, (old_path, new_path), (old, new), strict=True):
            if own is not None:
                text = side.text(path).split("\n")[own.first - 1 : own.last]
                words |= words_of("\n".join(text))
        return tuple((path, line) for path, line in self._definitions if defined_by(line.text) in words)

    @cached_property
    def _definitions(self) -> list[tuple[str, Line]]:
        """The changed lines outside of functions that define a name."""
        found = []
        for one in self.diff:
            if kind_of(one.new or one.old) != "source":
                continue
            bodies = [side.functions(path) for side, path in zip(self._sides, one[:2], strict=True)]
            for line in self._lines[one.old, one.new]:
                inside = bodies[1] if line.mark == "+" else bodies[0]
                number = line.new or line.old
                is_inside = any(body.first <= number <= body.last for body in inside)
                if line.mark != " " and not is_inside and defined_by(line.text):
                    found.append((one.new or one.old, line))
        return found

    def others(self, told: set[str]) -> list[OtherFile]:
        """The files of the diff that are not told of; what decides how a program is built first."""
        found = []
        for one in self.diff:
            path = one.new or one.old
            if path not in told:
                changed = [line for line in self._lines[one.old, one.new] if line.mark != " "]
                marks = [line.mark for line in changed]
                kind = kind_of(path)
                lines = tuple(changed[:MOST_LINES]) if kind == "build" else ()
                found.append(OtherFile(path, kind, marks.count("+"), marks.count("-"), lines))
        return sorted(found, key=lambda other: (other.kind != "build", other.kind, other.path))


def is_named(name: str, wanted: str) -> bool:
    """Whether a function of a source is the one that a profile names, maybe with class and parameters."""
    plain = wanted.partition("(")[0].partition("<")[0].strip()
    return name in (plain, wanted) or plain.endswith((f"::{name}", f".{name}", f" {name}"))


def _head_of(name: str) -> str:
    """The name of a function of C++ without its parameters, those of templates, and the type of its value."""
    plain, depth = "", 0
    for char in name.replace("operator<<", "operator").replace("operator<", "operator"):
        if char == "(" and not depth:
            break
        depth += (char == "<") - (char == ">")
        plain += char if not depth and char != ">" else ""
    return plain.strip().rpartition(" ")[2] if "operator " not in plain else plain.strip()


def _wider(by_text: Range, by_debug: Range | None) -> Range:
    """The lines of a function that both know: macros may hide its end from the text."""
    if by_debug is None or not by_debug.first <= by_text.last or not by_text.first <= by_debug.last:
        return by_text
    return Range(by_text.name, min(by_text.first, by_debug.first), max(by_text.last, by_debug.last))
