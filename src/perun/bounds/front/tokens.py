"""Tokens of preprocessed C, and the places in the original files that line markers give them."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\f\v\r\n]+)
    | (?P<name>[A-Za-z_$\x80-\U0010ffff][\w$]*(?!["'\w$]))
    | (?P<marker>(?<![^\n])[ \t]*\#[^\n]*)
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
    | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.]|'(?=\w))*)
    | (?P<mark>\.\.\.|->|\+\+|--|<<=|>>=|[-+*/%&|^=!<>]=|<<|>>|&&|\|\||\S)
    """,
    re.VERBOSE,
)
_LINE_MARKER = re.compile(
    r'^[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)[ \t]+"((?:\\.|[^"\\\n])*)"([ \t0-9]*)', re.MULTILINE
)
_BODY = re.compile(r"(?<=\)\n)\{\n(?:(?!\}).*\n)*?\}\n")
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = frozenset(OPENING.values())


class Token(NamedTuple):
    """`kind` is one of name, number, string, char and mark; `start` the offset of the text."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset behind the token."""
        return self.start + len(self.text)


def tokens(text: str) -> list[Token]:
    """All tokens but white space, line markers and pragmas."""
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind != "space" and kind != "marker":
            found.append(Token(kind or "", match.group(), match.start()))
    return found


def partners(sequence: list[Token]) -> dict[int, int]:
    """For the index of each opening bracket that of the one that closes it; unmatched ones are absent.

    A closing bracket ends what was opened inside and never closed: one bad place does not spoil the rest.
    """
    found: dict[int, int] = {}
    open_: list[int] = []
    for index, token in enumerate(sequence):
        if token.kind != "mark":
            continue
        if token.text in OPENING:
            open_.append(index)
        elif token.text in CLOSING:
            for depth in range(len(open_) - 1, -1, -1):
                if OPENING[sequence[open_[depth]].text] == token.text:
                    found[open_[depth]] = index
                    del open_[depth:]
                    break
    return found


def without_system_bodies(text: str) -> str:
    """Text whose inline functions of system headers, thousands for vector instructions, are only declared.

    They are found by their layout, a body between braces at the begin of lines: this is not worth tokens.
    """
    parts = []
    done = 0
    is_system = False
    for match in _LINE_MARKER.finditer(text):
        part = text[done : match.start()]
        parts.append(_BODY.sub(_declared, part) if is_system else part)
        is_system = "3" in match.group(3).split()
        done = match.start()
    return "".join([*parts, text[done:]])


def _declared(match: re.Match[str]) -> str:
    return ";" + "\n" * match.group().count("\n")


class SourceLocation(NamedTuple):
    """A file, as line markers name it, and a 1-based line.

    `depth` is 0 in the source itself, 1 in what it includes and so on; `system` tells headers of the system.
    """

    file: str
    line: int
    depth: int = 0
    system: bool = False


class Places:
    """Where offsets in preprocessed text come from; it begins at `start`."""

    def __init__(self, text: str, start: SourceLocation) -> None:
        self._text = text
        self._starts = [0]
        self._marks = [start]
        depth = start.depth
        for match in _LINE_MARKER.finditer(text):
            flags = match.group(3).split()
            depth = max(0, depth + ("1" in flags) - ("2" in flags))
            self._starts.append(min(match.end() + 1, len(text)))
            self._marks.append(
                SourceLocation(unescaped(match.group(2)), int(match.group(1)), depth, "3" in flags)
            )

    def of(self, offset: int) -> SourceLocation:
        """The place of an offset."""
        at = bisect_right(self._starts, offset) - 1
        mark = self._marks[at]
        return mark._replace(line=mark.line + self._text.count("\n", self._starts[at], offset))


def unescaped(name: str) -> str:
    """A file name as a line marker writes it, without its escapes."""
    if "\\" not in name:
        return name
    raw = _ESCAPE.sub(lambda match: _character(match.group(1)), name)
    return raw.encode("latin-1", "replace").decode("utf-8", "replace") if max(raw) < "\u0100" else raw


def _character(escape: str) -> str:
    return chr(int(escape, 8)) if len(escape) == 3 else escape
