"""The sources of both versions: which functions are the project's, where they lie, and what changed there."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.native.scopes import NONE, LineRange, SourceFunction, SourceScopes, is_nested, read
from perun.plugin.api import FileDiff, MinorVersion
from perun.repository.repository import Repository
from perun.running.explain.costs import FunctionKey
from perun.running.explain.data import HUNK, HunkLine, OtherFile
from perun.running.explain.definitions import Definition, definitions_of, flags
from perun.running.explain.lines import CodeCosts, bare, code_costs

if TYPE_CHECKING:
    from perun.profile.factory import Profile

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
_MACRO: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\n|[^\n])*)", re.MULTILINE)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")


def functions_of(path: str, text: str, macros: Collection[str] = ()) -> list[LineRange]:
    """The functions of a source in its order; none where its language is not known, or it cannot be parsed.

    Names of methods are those of the source without their class, but for `Class::method` where it is written
    so.

    :param macros: names of macros, which are no names of functions.
    """
    if len(text) > LARGEST_SOURCE:
        return []
    suffix = PurePosixPath(path).suffix.lower()
    return list(_python(text)) if suffix == ".py" else list(_braces(text, macros))


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


def _braces(text: str, macros: Collection[str]) -> Iterator[LineRange]:
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
                called = _called(head, macros)
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


def _called(head: str, macros: Collection[str]) -> str:
    """The name of the function that begins with this text; empty where it begins none."""
    place = _parentheses(head)
    if place < 0 or ("=" in head[:place] and not _OPERATOR.search(head[:place].rstrip())):
        return ""  # a value
    operator = _OPERATOR.search(head[:place].rstrip())
    if operator:
        return operator[0]
    found = _NAME.search(head[:place])
    name = re.sub(r"\s+", "", found[1]) if found else ""
    if name in macros:  # `FUNCTION(walk)`, or `UNUSED(n) int walk(int n)`
        inside, _, after = head[place:].partition(")")
        return _called(after, macros) or next(iter(_WORD.findall(inside)), "")
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


# The lines that a diff adds and removes, with their numbers on both sides.

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
        if hunk := HUNK.match(text):
            old, new = int(hunk[1]), int(hunk[3])
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


def sides_of(lines: Iterable[HunkLine]) -> tuple[list[str], list[str]]:
    """The texts of the lines that were removed, and of those that were added."""
    lines = list(lines)
    removed, added = ([line.text for line in lines if line.mark == mark] for mark in "-+")
    return removed, added


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
"""Changed lines that are told of a file which says how the program is built, or is data."""
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
        self.debug: SourceScopes = NONE
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
        """The functions of a file by the debug information; by the text where that does not contradict."""
        if path not in self._functions:
            base = PurePosixPath(path).name
            only = len(self.paths.get(base, ())) == 1  # debug information may name the path otherwise
            known = {
                name: one
                for (source, name), one in (self.debug.ranges if only else {}).items()
                if source == base and not is_nested(name)
            }
            found, told = list[LineRange](), set[str]()
            for one in functions_of(path, self.text(path), self._macros) if path else ():
                plain = one.name.rpartition("::")[2]
                others = [other for name, other in known.items() if bare(name) != plain]
                if not any(_overlap(one, other) for other in others):
                    found.append(_wider(one, _of_debug(one, known)))
                    told.add(plain)
            found += [one for name, one in known.items() if bare(name) not in told]
            self._functions[path] = sorted(found, key=lambda one: (one.first, -one.last))
        return self._functions[path]

    def definitions(self, path: str) -> list[Definition]:
        """What a file defines outside of its functions; nothing of Python."""
        return [] if not path or path.endswith(".py") else definitions_of(self.text(path))

    def expanded(self, words: frozenset[str]) -> frozenset[str]:
        """The words with those of the macros among them, and of the macros that these use."""
        found, new = set(words), set(words)
        while new:
            new = {word for name in new & self._macros.keys() for word in self._macros[name]} - found
            found |= new
        return frozenset(found)

    @cached_property
    def _macros(self) -> dict[str, frozenset[str]]:
        """The words that each macro of the sources consists of."""
        found: dict[str, frozenset[str]] = {}
        for path in self._some_sources:
            for one in _MACRO.finditer(self.text(path)):
                found[one[1]] = found.get(one[1], frozenset()) | words_of(one[2])
        return found

    def owner(self, path: str, line: int) -> FunctionKey | None:
        """The function that a line is in: by the debug information, else by the text."""
        base = PurePosixPath(path).name
        known = self.debug.owners.get((base, line)) if len(self.paths.get(base, ())) == 1 else None
        if known is not None and not is_nested(known.name):
            return FunctionKey(bare(known.name), known.source)
        inside = [one for one in self.functions(path) if one.first <= line <= one.last]
        return FunctionKey(bare(inside[-1].name), base) if inside else None

    def find(self, place: FunctionKey, lines: Sequence[int]) -> tuple[str, LineRange | None]:
        """The path of a function and its lines; an empty path where no file is meant.

        :param lines: some that it has; by these a function without a name is found.
        """
        candidates = self.candidates(place)
        for path in candidates:
            named = [one for one in self.functions(path) if is_named(one.name, place.name)]
            if named:  # of several with that name, the one that was executed
                return path, max(named, key=lambda one: sum(one.first <= line <= one.last for line in lines))
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
        self._costs: dict[int, tuple[Profile, CodeCosts]] = {}  # by the profile, which stays as long
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

    def costs(self, profile: Profile, side: int) -> CodeCosts:
        """What the functions of the project cost by a profile of instructions.

        :param side: 0 of the base, 1 of the head.
        """
        if id(profile) not in self._costs:
            self._costs[id(profile)] = profile, code_costs(profile, self.is_own, self._sides[side].owner)
        return self._costs[id(profile)][1]

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
        found = [one for name, lines in self.definitions.items() if name in words for one in lines]
        return tuple(dict.fromkeys(found))

    def words(
        self, place: FunctionKey, seen: Sequence[Sequence[int]]
    ) -> list[dict[tuple[str, int], frozenset[str]]]:
        """The identifiers in each line of a function, with those of macros that it uses, by path and line, of
        both versions. :param seen: as in :meth:`find`."""
        found = []
        for side, lines in zip(self._sides, seen, strict=True):
            path, own = side.find(place, lines)
            first, last = (own.first, own.last) if own is not None else (1, 0)
            text = side.text(path).split("\n")[first - 1 : last]
            found.append(
                {(path, first + at): side.expanded(words_of(one)) for at, one in enumerate(text)}
            )  # fmt: skip
        return found

    @cached_property
    def definitions(self) -> dict[str, list[tuple[str, HunkLine]]]:
        """The names that changed lines outside of functions define, with these lines and their files."""
        found: dict[str, list[tuple[str, HunkLine]]] = {}
        for one in self.diff:
            if kind_of(one.new or one.old) != "source":
                continue
            sides = [(side.functions(path), side.definitions(path))
                     for side, path in zip(self._sides, one[:2], strict=True)]  # fmt: skip
            lines = self._lines[one.old, one.new]
            removed, added = (_parts("\n".join(texts)) for texts in sides_of(lines))
            for line in lines:
                if line.mark == " ":
                    continue
                functions, defined = sides[line.mark == "+"]
                number = line.new or line.old
                if any(body.first <= number <= body.last for body in functions):
                    continue
                names = {defined_by(line.text)} - {""}
                around = [own for own in defined if own.first <= number <= own.last]
                if around:
                    changed = words_of(" ".join(_parts(line.text) - (removed & added)))
                    names = set((names or changed) & around[0].names or around[0].names)
                for name in names:
                    found.setdefault(name, []).append((one.new or one.old, line))
        return found

    @cached_property
    def builds(self) -> dict[str, tuple[bool, frozenset[str]]]:
        """What the diff changes of each build file, as :func:`~perun.running.explain.definitions.flags` says
        it."""
        paths = [one.new or one.old for one in self.diff]
        return {
            path: flags(*sides_of(self.changed_lines(path))) for path in paths if kind_of(path) == "build"
        }

    def changed_lines(self, path: str) -> list[HunkLine]:
        """The lines of the diff of a file."""
        return next((lines for one, lines in self._lines.items() if path in one), [])

    def inlined_into(self) -> Iterator[tuple[SourceFunction, SourceFunction]]:
        """Functions that are inlined in either version, with the one that they are inlined into."""
        for side in self._sides:
            yield from ((inner, one) for inner, outer in side.debug.within.items() for one in outer)

    def inlined_otherwise(self) -> list[SourceFunction]:
        """Functions that are inlined into others than before: how often their code is called says nothing."""
        old, new = (side.debug.within for side in self._sides)
        return [one for one in dict.fromkeys([*old, *new]) if old.get(one) != new.get(one)]

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


def _parts(text: str) -> set[str]:
    """What stands between commas, semicolons and braces, as `A = 1` of `enum { A = 1, B };`."""
    return {part.strip() for part in re.split(r"[,;{}\n]", text)}


def is_named(name: str, wanted: str) -> bool:
    """Whether a function of a source is the one that a profile names, maybe with class and parameters."""
    plain = wanted.partition("(")[0].partition("<")[0].strip()
    return name in (plain, wanted, bare(wanted)) or plain.endswith((f"::{name}", f".{name}", f" {name}"))


def _head_of(name: str) -> str:
    """The name of a function of C++ without its parameters, those of templates, and the type of its value."""
    plain, depth = "", 0
    for char in name.replace("operator<<", "operator").replace("operator<", "operator"):
        if char == "(" and not depth:
            break
        depth += (char == "<") - (char == ">")
        plain += char if not depth and char != ">" else ""
    return plain.strip().rpartition(" ")[2] if "operator " not in plain else plain.strip()


def _of_debug(by_text: LineRange, known: Mapping[str, LineRange]) -> LineRange | None:
    """What the debug information has of a function of the text, maybe as an instance of a template."""
    plain = by_text.name.rpartition("::")[2]
    found = [one for name, one in known.items() if bare(name) == plain]
    return min(found, key=lambda one: abs(one.first - by_text.first), default=None)


def _overlap(one: LineRange, other: LineRange) -> bool:
    return one.first <= other.last and other.first <= one.last


def _wider(by_text: LineRange, by_debug: LineRange | None) -> LineRange:
    """The lines of a function that both know: macros may hide its end from the text."""
    if by_debug is None or not by_debug.first <= by_text.last or not by_text.first <= by_debug.last:
        return by_text
    return LineRange(by_text.name, min(by_text.first, by_debug.first), max(by_text.last, by_debug.last))
