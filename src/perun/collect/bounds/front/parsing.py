"""One piece of a source as a syntax tree."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pycparser import c_ast, c_parser

from .dialect import STORAGE_WORDS, TYPE_WORDS
from .tokens import Place, Token

_DEEPEST = 20_000
_MESSAGE = re.compile(r"^(?P<file>.*?):(?P<line>\d+)(?::\d+)?:? *(?P<message>.*)$", re.DOTALL)
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*(?:pragma|ident|warning|sccs)[^\n]*", re.MULTILINE)


class NotReadable(Exception):
    """The parser does not understand a piece."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(reason)
        self.file = file
        self.line = line
        self.reason = reason


def parse(text: str, place: Place, types: list[str]) -> list[c_ast.Node]:
    """The declarations and definitions of a piece that begins at `place` and uses `types`.

    :raises NotReadable: if the parser does not understand it.
    """
    prelude = f"typedef int {', '.join(sorted(types))};\n" if types else "\n"
    name = place.file.replace("\\", "/").replace('"', "'").replace("\n", " ")
    code = _PRAGMA.sub("", f'{prelude}# {place.line} "{name}"\n{text}')
    try:
        with _deep_recursion():
            nodes: list[c_ast.Node] = c_parser.CParser().parse(code, place.file).ext
    except RecursionError:
        raise NotReadable(place.file, place.line, "statements are nested too deeply") from None
    except (c_parser.ParseError, AssertionError) as error:
        raise _explained(error, place) from None
    return nodes[len(types) :]


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """The parser calls itself for each level; a long chain of `else if` exceeds Python's usual limit."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _explained(error: Exception, place: Place) -> NotReadable:
    match = _MESSAGE.match(str(error))
    if match is None:
        return NotReadable(place.file, place.line, f"its syntax is not understood: {error}")
    message = match["message"]
    if message.startswith("before: "):
        message = f"its syntax is not understood before '{message.removeprefix('before: ')}'"
    return NotReadable(match["file"], int(match["line"]), message)


def undeclared_types(sequence: list[Token], body: int | None, declared: set[str]) -> Iterator[str]:
    """Names that stand where only a type can, of those that nothing declares."""
    for index, token in enumerate(sequence):
        if token.kind != "name" or token.text in declared:
            continue
        before = sequence[index - 1] if index else None
        rest = index + 1
        while rest < len(sequence) and sequence[rest].text in ("*", "const", "restrict", "volatile"):
            rest += 1
        after = sequence[rest] if rest < len(sequence) else None
        if after is None or (before is not None and before.text in _NOT_BEFORE_TYPES):
            continue
        in_header = body is None or index < body
        if _is_type(before, after, rest - index - 1, in_header):
            yield token.text


_NOT_BEFORE_TYPES = frozenset({"struct", "union", "enum", "goto", ".", "->", "return"})
_STATEMENT_STARTS = frozenset({";", "{", "}"})


def _is_type(before: Token | None, after: Token, stars: int, in_header: bool) -> bool:
    if after.kind == "name" and stars == 0:
        return after.text not in TYPE_WORDS
    opens = before is None or before.text in _STATEMENT_STARTS
    qualified = before is not None and before.text in STORAGE_WORDS | {"const", "volatile"}
    if stars and after.kind == "name" and (opens or qualified):
        return True
    if before is not None and before.text == "(" and after.text == ")":
        return stars > 0
    if in_header and before is not None and before.text in ("(", ","):
        return stars > 0 and (after.kind == "name" or after.text in (",", ")"))
    if qualified:
        return after.kind == "name"
    return False


def macro_words(sequence: list[Token], declared: set[str]) -> Iterator[Token]:
    """Names that stand before a declaration and cannot be a type: macros of headers that do not exist."""
    for index, token in enumerate(sequence[:-1]):
        after = sequence[index + 1]
        before = sequence[index - 1] if index else None
        if (
            token.kind != "name"
            or token.text in declared
            or (before is not None and before.text in _NOT_BEFORE_TYPES)
        ):
            continue
        if after.kind == "name" and (
            after.text in TYPE_WORDS - {"const", "volatile"} or after.text in STORAGE_WORDS
        ):
            yield token
