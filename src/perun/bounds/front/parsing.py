"""One piece of a source as a syntax tree."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from pycparser import c_ast, c_parser

from perun.bounds.front.dialect import KEYWORDS, STORAGE_WORDS, TYPE_WORDS
from perun.bounds.front.preprocessing import LineMap, SourceLocation, Token, partners

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


def parse(text: str, place: SourceLocation, types: list[str]) -> list[c_ast.Node]:
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


def _explained(error: Exception, place: SourceLocation) -> NotReadable:
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


# Preprocessed text in pieces: each definition or declaration outside of functions by itself.
#
# A piece that cannot be parsed then loses only itself, and declarations of headers that nothing uses need not
# be parsed.

_NAME = re.compile(r"[A-Za-z_$\x80-\U0010ffff][\w$]*")
_TAGGED = ("struct", "union", "enum")


@dataclass(frozen=True)
class SourcePiece:
    """Tokens from one semicolon or closing brace to the next.

    `declares` are the names that it introduces, tags, enumerators and members of nested types included;
    `uses` all names in it. `body` is the index of the token that opens the body of a function, or None.
    """

    tokens: list[Token]
    place: SourceLocation
    body: int | None
    declares: frozenset[str]
    uses: frozenset[str]

    @property
    def start(self) -> int:
        """The offset of the first token."""
        return self.tokens[0].start

    @property
    def is_typedef(self) -> bool:
        """Whether it declares types."""
        return any(one.text == "typedef" for one in self.tokens[:3])

    def function_name(self) -> Token | None:
        """The name of the function that it defines."""
        return _declarator(self.tokens, self.body) if self.body is not None else None


def pieces(sequence: list[Token], places: LineMap) -> list[SourcePiece]:
    """All pieces in order."""
    partner = partners(sequence)
    found: list[tuple[int, int, int | None]] = []
    start = at = 0
    assigned = False
    while at < len(sequence):
        token = sequence[at]
        text = token.text if token.kind == "mark" else ""
        if text == "{" and not assigned and _opens_body(sequence, start, at):
            start = _with_old_parameters(sequence, found, start, at)
            end = partner.get(at, len(sequence) - 1)
            found.append((start, end + 1, at - start))
            at = start = end + 1
            continue
        if text in ("(", "[", "{"):
            at = partner.get(at, at) + 1
            continue
        assigned = assigned or text == "="
        at += 1
        if text == ";":
            if at - start > 1:
                found.append((start, at, None))
            start, assigned = at, False
    if start < len(sequence):
        found.append((start, len(sequence), None))
    return [_piece(sequence[first:end], places, body) for first, end, body in found]


def _opens_body(sequence: list[Token], start: int, at: int) -> bool:
    if at == start:
        return True
    before = sequence[at - 1]
    return before.kind == "mark" and before.text in (")", ";")


def _with_old_parameters(
    sequence: list[Token], found: list[tuple[int, int, int | None]], start: int, at: int
) -> int:
    """Where a definition in the style of K&R begins, whose parameters are declared before its body."""
    if start != at:
        return start
    for back in range(len(found) - 1, max(-1, len(found) - 40), -1):
        first, end, body = found[back]
        if body is not None:
            break
        piece = sequence[first:end]
        partner = partners(piece)
        for index, token in enumerate(piece):
            if token.text == "(" and index and piece[index - 1].kind == "name" and index in partner:
                after = partner[index] + 1
                if after < len(piece) and piece[after].kind == "name":
                    del found[back:]
                    return first
                break
    return start


def _piece(sequence: list[Token], places: LineMap, body: int | None) -> SourcePiece:
    names = frozenset(_NAME.findall(" ".join(one.text for one in sequence if one.kind in ("name", "mark"))))
    declares = frozenset(_declared(sequence, body))
    return SourcePiece(sequence, places.of(sequence[0].start), body, declares, names - KEYWORDS)


def _declarator(sequence: list[Token], body: int | None) -> Token | None:
    """The first name that a list of parameters follows."""
    limit = len(sequence) if body is None else body
    for index in range(limit - 1):
        token = sequence[index]
        if token.kind == "name" and token.text not in KEYWORDS and sequence[index + 1].text in ("(", ")"):
            return token
    return None


def _declared(sequence: list[Token], body: int | None) -> Iterable[str]:
    if body is not None:
        name = _declarator(sequence, body)
        yield from [name.text] if name else []
        return
    depth = 0
    enumerating: list[bool] = []
    for index, token in enumerate(sequence):
        before = sequence[index - 1] if index else None
        after = sequence[index + 1].text if index + 1 < len(sequence) else ";"
        if token.kind == "mark":
            if token.text == "{":
                enumerating.append(_is_enum(sequence, index))
            elif token.text == "}" and enumerating:
                enumerating.pop()
            depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        elif token.kind != "name" or token.text in KEYWORDS or before is None:
            continue
        elif before.text in _TAGGED:
            if after == "{" or (after == ";" and index == 1):
                yield token.text
        elif enumerating:
            if enumerating[-1] and before.text in ("{", ","):
                yield token.text
        elif (depth == 0 and after in ("(", "[", ";", ",", "=", ":")) or (
            depth > 0 and before.text == "*" and _in_declarator(sequence, index)
        ):
            yield token.text


def _is_enum(sequence: list[Token], at: int) -> bool:
    return any(one.text == "enum" for one in sequence[max(0, at - 2) : at])


def _in_declarator(sequence: list[Token], index: int) -> bool:
    """Whether a name stands in `(*name)` or `(*const name)` outside of parameters."""
    at = index - 1
    while at >= 0 and (sequence[at].text in ("*", "const", "volatile", "restrict")):
        at -= 1
    depth = 0
    for one in sequence[:at]:
        depth += (one.text in ("(", "{")) - (one.text in (")", "}"))
    return at >= 0 and sequence[at].text == "(" and depth == 0


def needed(all_pieces: list[SourcePiece], roots: set[int]) -> set[int]:
    """Indexes of pieces that the ones of `roots` refer to by name, directly or not, and these themselves."""
    by_name: dict[str, list[int]] = {}
    for index, piece in enumerate(all_pieces):
        for name in piece.declares:
            by_name.setdefault(name, []).append(index)
    found = set(roots)
    waiting = list(roots)
    while waiting:
        for name in all_pieces[waiting.pop()].uses:
            for index in by_name.pop(name, ()):
                if index not in found:
                    found.add(index)
                    waiting.append(index)
    return found
