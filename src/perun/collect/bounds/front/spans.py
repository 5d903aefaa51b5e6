"""Where loops begin and end, found by matching brackets."""

from __future__ import annotations

from typing import NamedTuple

from .tokens import Token, partners


class Span(NamedTuple):
    """Indexes of the first and the last token of a loop."""

    first: int
    last: int


def loop_spans(sequence: list[Token]) -> list[Span]:
    """All loops of a function definition, in the order of the text. Its body is the last pair of braces."""
    partner = partners(sequence)
    at, body = 0, None
    while at < len(sequence):
        if sequence[at].text == "{" and sequence[at].kind == "mark":
            body = at
        at = partner.get(at, at) + 1
    if body is None:
        return []
    walk = _Walk(sequence, partner)
    walk.block(body)
    return sorted(walk.found)


class _Walk:
    def __init__(self, sequence: list[Token], partner: dict[int, int]) -> None:
        self.sequence = sequence
        self.partner = partner
        self.found: list[Span] = []

    def text(self, at: int) -> str:
        return self.sequence[at].text if at < len(self.sequence) else ""

    def block(self, at: int) -> int:
        """Walk through `{ ... }`; the index behind it."""
        end = self.partner.get(at, len(self.sequence) - 1)
        at += 1
        while at < end:
            at = self.statement(at, end)
        return end + 1

    def parenthesised(self, at: int) -> int:
        """The index behind `( ... )`."""
        return self.partner.get(at, at) + 1 if self.text(at) == "(" else at

    def statement(self, at: int, end: int) -> int:
        """Walk through a statement; the index behind it."""
        begun: list[int] = []
        while at < end:
            text = self.text(at)
            if text in ("for", "while"):
                begun.append(at)
                at = self.parenthesised(at + 1)
            elif text == "switch":
                at = self.parenthesised(at + 1)
            elif text == "if":
                at = self.statement(self.parenthesised(at + 1), end)
                if self.text(at) != "else":
                    break
                at += 1
            elif text == "do":
                begun.append(at)
                at = self.statement(at + 1, end)
                at = self.parenthesised(at + 1) if self.text(at) == "while" else at
                at += self.text(at) == ";"
                break
            elif text in ("case", "default"):
                at = self._behind_label(at + 1, end)
            elif self.text(at + 1) == ":" and self.sequence[at].kind == "name":
                at += 2
            elif text == "{":
                at = self.block(at)
                break
            else:
                at = self._behind_semicolon(at, end)
                break
        self.found += [Span(one, min(at, end) - 1) for one in begun]
        return max(at, 1)

    def _behind_label(self, at: int, end: int) -> int:
        questions = 0
        while at < end:
            text = self.text(at)
            questions += text == "?"
            if text == ":":
                if not questions:
                    return at + 1
                questions -= 1
            at = self.partner.get(at, at) + 1
        return end

    def _behind_semicolon(self, at: int, end: int) -> int:
        while at < end and self.text(at) != ";":
            at = self.partner.get(at, at) + 1
        return at + 1
