"""The sources of both versions: which functions are the project's, where they lie, and what changed there."""

from __future__ import annotations

import ast
import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from perun.native.elf import MAGIC, Damaged, checked, debug_information, with_debug_information
from perun.plugin.api import FileDiff, MinorVersion
from perun.repository.repository import Repository
from perun.running.explain.costs import FunctionKey
from perun.running.explain.data import HunkLine, OtherFile

# Where the functions of a source begin and end, by its text.
#
# Python is parsed (`ast`). Of languages with braces, the text is read without comments, literals and the
# lines of the preprocessor: a function is a name before parentheses and a body in braces, outside of any
# other body; braces of namespaces, classes and the like are passed through.

LARGEST_SOURCE: Final = 4 << 20
"""Characters of the longest source that is read."""
_SCOPES: Final = re.compile(
    r"\b(namespace|class|struct|union|enum|extern|impl|trait|interface|mod|module)\b[^=;]*$", re.DOTALL
)
_NAME: Final = re.compile(r"([A-Za-z_~$][\w$]*(?:\s*::\s*~?[A-Za-z_$][\w$]*)*)\s*$")
_WORDS: Final = frozenset(
    {"if", "for", "while", "switch", "return", "sizeof", "catch", "do", "else", "match"}
)
_HIDDEN: Final = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
_OPERATOR: Final = re.compile(r"\boperator\s*[^\s\w(]+$")
_ACCESS: Final = re.compile(r"\b(?:public|private|protected)\s*:(?!:)")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")


class LineRange(NamedTuple):
    """A function and its lines, the first and the last included, counted from 1."""

    name: str
    first: int
    last: int


def functions_of(path: str, text: str) -> list[LineRange]:
    """The functions of a source in its order; none where its language is not known, or it cannot be parsed.

    Names of methods are those of the source without their class, but for `Class::method` where it is written
    so.
    """
    if len(text) > LARGEST_SOURCE:
        return []
    suffix = PurePosixPath(path).suffix.lower()
    return list(_python(text)) if suffix == ".py" else list(_braces(text))


def words_of(text: str) -> frozenset[str]:
    """The identifiers in a text."""
    return frozenset(_WORD.findall(text))


def defined_by(text: str) -> str:
    """The name that a line outside of functions defines, as `#define N 3` or `N = 3` do; else empty."""
    found = re.match(r"\s*#\s*define\s+(\w+)", text)
    found = found or re.match(r"[\w\s*&<>:,\[\]]*?\b(\w+)\s*(?:\[[^\]]*\]\s*)*=(?!=)", text)
    found = found or re.match(r"\s*(?:import|from\s+\S+\s+import)\s+(\w+)", text)
    return found[1] if found else ""


def _python(text: str) -> Iterator[LineRange]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            yield LineRange(node.name, first, node.end_lineno or node.lineno)


def _blank(found: re.Match[str]) -> str:
    """As many lines, without what is written there."""
    return "\n" * found[0].count("\n") if found[0][0] in "/#" else '""'


def _braces(text: str) -> Iterator[LineRange]:
    text = _HIDDEN.sub(_blank, text)
    start = 0  # of what stands before the next brace
    open_scopes = depth = 0
    name, first = "", 0
    line = 1
    for found in re.finditer(r"[{};\n]", text):
        char = found[0]
        if char == "\n":
            line += 1
            continue
        if char == "{":
            if depth:
                depth += 1
            else:
                head = _ACCESS.sub("", text[start : found.start()])
                called = _called(head)
                if not called and _SCOPES.search(head):
                    open_scopes += 1
                else:
                    depth, name = 1, called
                    first = line - head.lstrip().count("\n")
        elif char == "}":
            if depth:
                depth -= 1
                if not depth and name:
                    yield LineRange(name, first, line)
            elif open_scopes:
                open_scopes -= 1
        if not depth:
            start = found.end()


def _called(head: str) -> str:
    """The name of the function that begins with this text; empty where it begins none."""
    place = _parentheses(head)
    if place < 0 or ("=" in head[:place] and not _OPERATOR.search(head[:place].rstrip())):
        return ""  # a value
    operator = _OPERATOR.search(head[:place].rstrip())
    if operator:
        return operator[0]
    found = _NAME.search(head[:place])
    name = re.sub(r"\s+", "", found[1]) if found else ""
    return "" if name in _WORDS else name


def _parentheses(head: str) -> int:
    """Where the first parenthesis on the outermost level opens that stands after a name; -1 if none does."""
    depth = 0
    for place, char in enumerate(head):
        if char == "(":
            before = head[:place].rstrip()
            named = _NAME.search(before) or _OPERATOR.search(before)
            if not depth and named and not before.endswith("__attribute__"):
                return place
            depth += 1
        elif char == ")":
            depth -= 1
    return -1


# Where functions begin and end by the debug information of a program, and which of them were inlined.
#
# The entry (DIE) of a function says where it is declared (DWARF 5, section 3.3); its last line is the largest
# one of its file in the line table for its addresses (section 6.2).

LARGEST_PROGRAM: Final = 256 << 20
"""Bytes of the largest program that is read."""


class DebugLines(NamedTuple):
    """What the debug information says.

    :param ranges: of functions, by the base name of their source and their name. :param inlined: names of
        functions that have no code of their own, as all their calls are inlined.
    :param has_lines: whether there is debug information at all.
    """

    ranges: dict[tuple[str, str], LineRange]
    inlined: frozenset[str]
    has_lines: bool


_COPIES: Final = ("DW_AT_abstract_origin", "DW_AT_specification")
NONE: Final = DebugLines({}, frozenset(), False)


def read(path: Path, sources: Collection[str]) -> DebugLines:
    """The functions of a program whose sources are among these.

    What is no program, is damaged, or has no debug information has :data:`NONE`.

    :param sources: base names of files; others are not read, as large programs have very many.
    """
    with suppress(OSError, Damaged), path.open("rb") as file, checked():
        if path.stat().st_size > LARGEST_PROGRAM or file.read(len(MAGIC)) != MAGIC:
            return NONE
        debug = debug_information(with_debug_information(file))
        if debug is not None:
            return _collect(debug, frozenset(sources))
    return NONE


def _collect(debug: Any, sources: frozenset[str]) -> DebugLines:
    ranges: dict[tuple[str, str], LineRange] = {}
    inlined: set[str] = set()
    own: set[str] = set()
    for unit in debug.iter_CUs():
        name = _text(unit.get_top_DIE().attributes.get("DW_AT_name"))
        if posixpath.basename(name) not in sources:
            continue
        for one, is_inlined in _functions(debug, unit):
            (inlined if is_inlined else own).add(one.name)
            if one.last:
                ranges[posixpath.basename(name), one.name] = one
    return DebugLines(ranges, frozenset(inlined - own), True)


def _functions(debug: Any, unit: Any) -> Iterator[tuple[LineRange, bool]]:
    """Each function with its lines, (0, 0) if they are not known, and whether it is inlined everywhere."""
    rows = _rows(debug, unit)
    for entry in unit.iter_DIEs():
        if entry.tag != "DW_TAG_subprogram" or "DW_AT_declaration" in entry.attributes:
            continue
        name, first = _name_and_line(entry)
        if not name:
            continue
        low, high = _addresses(entry)
        if high <= low:
            is_inlined = entry.attributes.get("DW_AT_inline")
            yield LineRange(name, 0, 0), is_inlined is not None and is_inlined.value in (1, 3)
            continue
        lines = [line for address, line in rows if low <= address < high and line >= first]
        yield LineRange(name, first or min(lines, default=0), max(lines, default=0)), False


def _rows(debug: Any, unit: Any) -> list[tuple[int, int]]:
    """Addresses and lines of the unit's own source, which is the file of its first row."""
    program = debug.line_program_for_CU(unit)
    states = [one.state for one in program.get_entries() if one.state is not None] if program else []
    files = {state.file for state in states[:1]}
    return [(state.address, state.line) for state in states if state.file in files and not state.end_sequence]


def _name_and_line(entry: Any) -> tuple[str, int]:
    """The name and the line of the declaration, maybe those of the entry that it is a copy of."""
    for _ in range(4):
        name = _text(entry.attributes.get("DW_AT_name"))
        if name:
            line = entry.attributes.get("DW_AT_decl_line")
            return name, int(line.value) if line is not None else 0
        links = [key for key in _COPIES if key in entry.attributes]
        if not links:
            break
        entry = entry.get_DIE_from_attribute(links[0])
    return "", 0


def _addresses(entry: Any) -> tuple[int, int]:
    low, high = (entry.attributes.get(key) for key in ("DW_AT_low_pc", "DW_AT_high_pc"))
    if low is None or high is None:
        return 0, 0
    is_address = high.form == "DW_FORM_addr"
    return int(low.value), int(high.value) if is_address else int(low.value + high.value)


def _text(attribute: Any) -> str:
    value = attribute.value if attribute is not None else b""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


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


def lines_of(one: FileDiff) -> Iterator[HunkLine]:
    """The lines of all hunks of the diff of a file, in its order."""
    old = new = 0
    for text in one.patch.split("\n"):
        if hunk := _HUNK.match(text):
            old, new = int(hunk[1]), int(hunk[2])
        elif not (old or new) or text.startswith("\\"):
            continue  # the head of the file, or "No newline at end of file"
        elif text.startswith("+"):
            yield HunkLine("+", 0, new, text[1:])
            new += 1
        elif text.startswith("-"):
            yield HunkLine("-", old, 0, text[1:])
            old += 1
        elif text.startswith(" "):
            yield HunkLine(" ", old, new, text[1:])
            old, new = old + 1, new + 1


def within(lines: Iterable[HunkLine], old: tuple[int, int], new: tuple[int, int]) -> list[HunkLine]:
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


class FunctionSource(NamedTuple):
    """Where a function is, and what changed there.

    :param path: in the newer version that has it. :param range: in that version; None if it is not known.
    :param lines: of the diff within it. :param near: changed lines elsewhere that define what it uses.
    """

    path: str
    range: LineRange | None
    lines: tuple[HunkLine, ...]
    near: tuple[tuple[str, HunkLine], ...]


NOWHERE = FunctionSource("", None, (), ())


class _Version:
    """The sources of one version."""

    def __init__(self, repo: Repository, version: MinorVersion) -> None:
        self._repo = repo
        self._version = version
        self._texts: dict[str, str] = {}
        self._functions: dict[str, list[LineRange]] = {}
        self.debug: DebugLines = NONE
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

    def functions(self, path: str) -> list[LineRange]:
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

    def find(self, place: FunctionKey, lines: Sequence[int]) -> tuple[str, LineRange | None]:
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
    :param with_harness: a harness is a part of them: what they know no source of the project of is its own.
    :ivar knows: whether the version control told the diff.
    """

    def __init__(
        self,
        repo: Repository,
        base: MinorVersion,
        head: MinorVersion,
        programs: Sequence[Path | None],
        *,
        with_harness: bool = False,
    ) -> None:
        self._with_harness = with_harness
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
                side.debug = read(program, set(side.paths))

    @property
    def has_debug_lines(self) -> bool:
        """Whether both programs have debug information."""
        return all(side.debug.has_lines for side in self._sides)

    def is_own(self, place: FunctionKey) -> bool:
        """Whether the function is one of the project: of one of its files, or of its program itself."""
        if place.source in self.program_names:
            if self._with_harness and self.has_debug_lines:
                return False
            return not _LIBRARY.search(_head_of(place.name))
        return bool(place.source) and any(place.source in side.paths for side in self._sides)

    def is_inlined(self, place: FunctionKey) -> bool:
        """Whether one of the versions has no code of the function, as all its calls are inlined."""
        return any(place.name in side.debug.inlined for side in self._sides)

    def inlined_between(self) -> list[str]:
        """Functions that have code of their own in one version, and are inlined in the other."""
        base, head = (side.debug for side in self._sides)
        return sorted(base.inlined ^ head.inlined)

    def find(self, place: FunctionKey, seen: Sequence[Sequence[int]] = ((), ())) -> FunctionSource:
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
        lines: list[HunkLine] = []
        for (before, after), found in self._lines.items():
            if (old_path and before == old_path) or (new_path and after == new_path):
                lines += within(found, *ranges)
        return FunctionSource(path, new or old, tuple(lines), self._near(old_path, old, new_path, new))

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
        self, old_path: str, old: LineRange | None, new_path: str, new: LineRange | None
    ) -> tuple[tuple[str, HunkLine], ...]:
        """Changed definitions outside of functions whose names the function uses."""
        words: set[str] = set()
        for side, path, own in zip(self._sides, (old_path, new_path), (old, new), strict=True):
            if own is not None:
                text = side.text(path).split("\n")[own.first - 1 : own.last]
                words |= words_of("\n".join(text))
        return tuple((path, line) for path, line in self._definitions if defined_by(line.text) in words)

    @cached_property
    def _definitions(self) -> list[tuple[str, HunkLine]]:
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


def _wider(by_text: LineRange, by_debug: LineRange | None) -> LineRange:
    """The lines of a function that both know: macros may hide its end from the text."""
    if by_debug is None or not by_debug.first <= by_text.last or not by_text.first <= by_debug.last:
        return by_text
    return LineRange(by_text.name, min(by_text.first, by_debug.first), max(by_text.last, by_debug.last))
