"""One piece of a source as a syntax tree."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from pycparser import c_ast, c_parser

from .dialect import STORAGE_WORDS, TYPE_WORDS
from .tokens import Place, Token

_DEEPEST = 20_000
_MESSAGE = re.compile(r"^(?P<file>.*?):(?P<line>\d+)(?::\d+)?:? *(?P<message>.*)$", re.DOTALL)
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*(?:pragma|ident|warning|sccs)[^\n]*", re.MULTILINE)
_FOREIGN = re.compile(r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|[^\x00-\x7f]""")
_ENCODED = re.compile(r"_u([0-9a-f]{6})")


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
    if not code.isascii():
        code = _FOREIGN.sub(_in_ascii, code)
    try:
        nodes: list[c_ast.Node] = c_parser.CParser().parse(code, place.file).ext
    except RecursionError:
        raise NotReadable(place.file, place.line, "statements are nested too deeply") from None
    except (c_parser.ParseError, AssertionError) as error:
        raise _explained(error, place) from None
    return nodes[len(types) :]


def _in_ascii(match: re.Match[str]) -> str:
    literal = match.group(1)
    return re.sub(r"[^\x00-\x7f]", "?", literal) if literal else f"_u{ord(match.group()):06x}"


def as_written(name: str) -> str:
    """A name as the source has it: for the parser, letters that are not ASCII are spelt by numbers."""
    return _ENCODED.sub(lambda match: chr(int(match.group(1), 16)), name)


@contextmanager
def deep_recursion() -> Iterator[None]:
    """What reads calls itself for each level; a long chain of `else if` exceeds Python's usual limit."""
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


class Guess(NamedTuple):
    """What names that nothing declares must be: types, or macros of missing headers that mean nothing."""

    types: set[str]
    words: list[Token]


def guess(sequence: list[Token], body: int | None, declared: set[str], types: set[str]) -> Guess:
    """Names of a piece that stand where only a type can, or where none can, of those that nothing declares.

    `int EXPORT f(` holds a superfluous word, so does `size EXPORT f(`, and `size f(` a type. `declared` are
    all names but those of types, which are in `types`.
    """
    found = Guess(set(), [])
    at = 0
    while at < len(sequence):
        behind = at
        while behind < len(sequence) and _is_word(sequence[behind]):
            behind += 1
        if behind > at:
            _guess_side_by_side(sequence, at, behind, _Known(declared, types), found)
            if sequence[behind - 1].text not in declared | types:
                _guess_alone(sequence, behind - 1, body is None or behind <= body, found)
        at = behind + 1
    return found


class _Known(NamedTuple):
    declared: set[str]
    types: set[str]


def _is_word(token: Token) -> bool:
    return token.kind == "name" and token.text not in _STATEMENT_WORDS


def _guess_side_by_side(sequence: list[Token], first: int, behind: int, known: _Known, found: Guess) -> None:
    """Guess from names without a mark between them: the last is what they declare, unless a star follows."""
    if behind - first < 2 or (first and sequence[first - 1].text in (".", "->")):
        return
    names = sequence[first:behind]
    specifiers = names if behind < len(sequence) and sequence[behind].text == "*" else names[:-1]
    certain = [one for index, one in enumerate(specifiers) if _is_type(specifiers, index, known)]
    has_type = bool(certain) or (bool(first) and sequence[first - 1].text == "*")
    if not has_type and specifiers is names and names[-1].text not in known.declared:
        found.types.add(names[-1].text)
        certain, has_type = [names[-1]], True
    for index, one in enumerate(specifiers):
        if one.text in known.declared or one in certain or (index and names[index - 1].text in _TAGS):
            continue
        if has_type:
            found.words.append(one)
        else:
            found.types.add(one.text)
            has_type = True


def _is_type(names: list[Token], index: int, known: _Known) -> bool:
    text = names[index].text
    return text in known.types or text in _BASIC_TYPES or bool(index and names[index - 1].text in _TAGS)


def _guess_alone(sequence: list[Token], at: int, in_header: bool, found: Guess) -> None:
    """Guess from `name *` in a declaration, `(name *)`, or `(name)` before an operand."""
    before = sequence[at - 1].text if at else ";"
    behind = at + 1
    while behind < len(sequence) and sequence[behind].text in ("*", "const", "restrict", "volatile"):
        behind += 1
    if behind == len(sequence):
        return
    after = sequence[behind]
    if behind == at + 1:
        is_type = before == "(" and after.text == ")" and _is_cast(sequence, at)
    elif before == "(" and after.text == ")":
        is_type = True
    elif before in _STATEMENT_STARTS or before in _QUALIFIERS:
        is_type = after.kind == "name" or after.text == "("
    else:
        is_type = in_header and before in ("(", ",") and (after.kind == "name" or after.text in (",", ")"))
    if is_type:
        found.types.add(sequence[at].text)


def _is_cast(sequence: list[Token], at: int) -> bool:
    """Whether `(name)` can be nothing but a cast: an operand follows, and no condition ends here."""
    if (
        at + 2 >= len(sequence)
        or sequence[at + 2].kind == "mark"
        or sequence[at + 2].text in _STATEMENT_WORDS
    ):
        return False
    before = sequence[at - 2] if at >= 2 else None
    return (
        before is None
        or before.text in _BEFORE_OPERANDS
        or (before.kind == "mark" and before.text not in (")", "]"))
    )


_TAGS = frozenset({"struct", "union", "enum"})
_BASIC_TYPES = TYPE_WORDS - {"const", "volatile"} - _TAGS
_QUALIFIERS = STORAGE_WORDS | {"const", "volatile"}
_BEFORE_OPERANDS = frozenset({"return", "case", "else"})
_STATEMENT_STARTS = frozenset({";", "{", "}"})
_STATEMENT_WORDS = frozenset({
    "if", "else", "for", "while", "do", "switch", "case", "default", "break", "continue", "goto", "return",
    "sizeof",
})  # fmt: skip
