"""What a source defines outside of its functions, and which changes of a text change nothing.

Macros with their further lines, constants, variables with their values, enumerations and structures: a line
within one of them changes what uses its name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_COMMENT: Final = re.compile(r"//(?:\\\n|[^\n])*|/\*.*?\*/", re.DOTALL)
_TEXT: Final = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'")
_DEFINE: Final = re.compile(r"\s*#\s*define\s+(\w+)")
_PASSED: Final = re.compile(r"\b(?:namespace|extern)\b[^=;(){}]*$")
_TYPE: Final = re.compile(r"\b(?:struct|union|class)\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?(\w+)[^;={(]*\{")
_VALUE: Final = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=(?!=)|;|,|\{)")
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
_QUALIFIERS: Final = frozenset({"const", "static", "register", "restrict", "noexcept", "constexpr", "final"})
_FLAG: Final = re.compile(r"(?:^|[\s=\"'])(-[A-Za-z]\S*)")
_OPTION: Final = re.compile(
    r"\b(opt-level|lto|codegen-units|optimization|buildtype|CMAKE_BUILD_TYPE|debug)\b"
)
_GIVEN: Final = re.compile(r"-D\s*(\w+)")


class Definition(NamedTuple):
    """Names, and the lines that define them, counted from 1."""

    names: frozenset[str]
    first: int
    last: int


def definitions_of(text: str) -> list[Definition]:
    """What the text of a language with braces defines outside of functions."""
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    lines, found = text.split("\n"), list[Definition]()
    at = 0
    while at < len(lines):
        last = at
        while lines[last].endswith("\\") and last + 1 < len(lines):
            last += 1
        if lines[at].lstrip().startswith("#"):
            if name := _DEFINE.match(lines[at]):
                found.append(Definition(frozenset({name[1]}), at + 1, last + 1))
            lines[at : last + 1] = [""] * (last + 1 - at)
        at = last + 1
    return found + list(_statements(_TEXT.sub('""', "\n".join(lines))))


def _statements(text: str) -> Iterator[Definition]:
    start = depth = 0
    for found in re.finditer(r"[{};]", text):
        char, at = found[0], found.start()
        if char == "{":
            if not depth and _PASSED.search(text[start:at]):
                start = at + 1
            else:
                depth += 1
            continue
        if char == "}":
            depth = max(depth - 1, 0)
            after = text[at + 1 : at + 80].lstrip()[:1]
            if depth or (
                after and (after in ";=,*[" or after.isidentifier()) and not _is_body(text[start:at])
            ):
                continue
        if not depth:
            head = text[start : at + 1]
            if (names := _names(head)) and head.strip():
                first = text.count("\n", 0, start + len(head) - len(head.lstrip())) + 1
                yield Definition(names, first, text.count("\n", 0, at) + 1)
            start = at + 1


def _is_body(text: str) -> bool:
    """Whether a statement that ends with a brace is a function."""
    head = text.partition("{")[0]
    return "(" in head and "=" not in head


def _names(text: str) -> frozenset[str]:
    head, brace, body = text.partition("{")
    if "(" in head and "=" not in head:
        return frozenset()
    if brace and re.search(r"\benum\b", head):
        return frozenset(re.findall(r"(?:^|,)\s*(\w+)", body)) | frozenset(_WORD.findall(head)[-1:]) - {
            "enum"
        }
    if found := _TYPE.search(text):
        tail = text.rpartition("}")[2]
        return frozenset({found[1], *_WORD.findall(tail)})
    if brace and "=" not in head:
        return frozenset(_WORD.findall(text.rpartition("}")[2]))
    found = _VALUE.search(text)
    return frozenset({found[1]}) if found else frozenset()


def says_the_same(removed: Iterable[str], added: Iterable[str]) -> bool:
    """Whether lines of a diff differ in nothing that costs: in comments, blanks, qualifiers, and the order of
    words."""
    return _tokens(removed) == _tokens(added)


def _tokens(lines: Iterable[str]) -> Counter[str]:
    text = _COMMENT.sub(" ", "\n".join(lines))
    text = re.sub(r"^\s*\*.*$", "", text, flags=re.MULTILINE) if re.match(r"\s*\*[\s/]", text) else text
    return Counter(_TOKEN.findall(text)) - Counter(dict.fromkeys(_QUALIFIERS, 1 << 30))


def flags(removed: Iterable[str], added: Iterable[str]) -> tuple[bool, frozenset[str]]:
    """Whether lines of a build file change options of a compiler, and the names that they define or no longer
    define there."""
    sides = [Counter[str](), Counter[str]()]
    for side, lines in zip(sides, (removed, added), strict=True):
        for line in lines:
            side.update(_FLAG.findall(line))
            side.update([line.strip()] if _OPTION.search(line) else [])
    changed = (sides[0] - sides[1]) + (sides[1] - sides[0])
    given = frozenset(name for flag in changed for name in _GIVEN.findall(flag))
    return bool(changed), given
