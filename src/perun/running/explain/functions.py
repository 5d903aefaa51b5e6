"""Where the functions of a source begin and end, by its text.

Python is parsed (`ast`). Of languages with braces, the text is read without comments, literals and the lines
of the preprocessor: a function is a name before parentheses and a body in braces, outside of any other body;
braces of namespaces, classes and the like are passed through.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from perun.native.elf import MAGIC, Damaged, checked, debug_information, with_debug_information

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


class Range(NamedTuple):
    """A function and its lines, the first and the last included, counted from 1."""

    name: str
    first: int
    last: int


def functions_of(path: str, text: str) -> list[Range]:
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


def _python(text: str) -> Iterator[Range]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            yield Range(node.name, first, node.end_lineno or node.lineno)


def _blank(found: re.Match[str]) -> str:
    """As many lines, without what is written there."""
    return "\n" * found[0].count("\n") if found[0][0] in "/#" else '""'


def _braces(text: str) -> Iterator[Range]:
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
                    yield Range(name, first, line)
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

    ranges: dict[tuple[str, str], Range]
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
    ranges: dict[tuple[str, str], Range] = {}
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


def _functions(debug: Any, unit: Any) -> Iterator[tuple[Range, bool]]:
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
            yield Range(name, 0, 0), is_inlined is not None and is_inlined.value in (1, 3)
            continue
        lines = [line for address, line in rows if low <= address < high and line >= first]
        yield Range(name, first or min(lines, default=0), max(lines, default=0)), False


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
