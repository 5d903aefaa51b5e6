"""Where the functions of a source begin and end, by its text.

Python is parsed (`ast`). Of languages with braces, the text is read without comments, literals and the lines
of the preprocessor: a function is a name before parentheses and a body in braces, outside of any other body;
braces of namespaces, classes and the like are passed through.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final, NamedTuple

MOST: Final = 4 << 20
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
    if len(text) > MOST:
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
