"""Preprocessed text in pieces: each definition or declaration outside of functions by itself.

A piece that cannot be parsed then loses only itself, and declarations of headers that nothing uses need not
be parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .dialect import KEYWORDS
from .tokens import Place, Places, Token, partners

_NAME = re.compile(r"[A-Za-z_$\x80-\U0010ffff][\w$]*")
_TAGGED = ("struct", "union", "enum")


@dataclass(frozen=True)
class Piece:
    """Tokens from one semicolon or closing brace to the next.

    `declares` are the names that it introduces, tags, enumerators and members of nested types included;
    `uses` all names in it. `body` is the index of the token that opens the body of a function, or None.
    """

    tokens: list[Token]
    place: Place
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


def pieces(sequence: list[Token], places: Places) -> list[Piece]:
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


def _piece(sequence: list[Token], places: Places, body: int | None) -> Piece:
    names = frozenset(_NAME.findall(" ".join(one.text for one in sequence if one.kind in ("name", "mark"))))
    declares = frozenset(_declared(sequence, body))
    return Piece(sequence, places.of(sequence[0].start), body, declares, names - KEYWORDS)


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


def needed(all_pieces: list[Piece], roots: set[int]) -> set[int]:
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
