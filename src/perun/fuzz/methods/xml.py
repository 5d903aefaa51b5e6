"""Rules for files of the XML family: XML, SVG, XHTML, XUL, HTML (manual 9.2).

They see tags and attributes as text, without a parser: mutations need not be well-formed. Each takes lines
and returns new ones, None if there is no tag or attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

_TAG: Final = re.compile(rb"<[/!?A-Za-z_:](?:\"[^\"<]*\"|'[^'<]*'|[^<>\"'])*>")
_ATTRIBUTE: Final = re.compile(rb"(?<!\s)\s+([A-Za-z_:][^\s=<>\"'/]*)(\s*=\s*)(\"[^\"]*\"|'[^']*')")

Lines = Sequence[bytes]
Changed = list[bytes] | None
Span = tuple[int, int]


def remove_attribute(lines: Lines, random: Random) -> Changed:
    """Rule D.1: Remove a random attribute of a random tag."""
    return _remove(lines, random, _attributes(lambda found: found.span()))


def remove_attribute_name(lines: Lines, random: Random) -> Changed:
    """Rule D.2: Remove the name of a random attribute of a random tag; its value stays."""
    return _remove(lines, random, _attributes(lambda found: (found.start(1), found.end(2))))


def remove_attribute_value(lines: Lines, random: Random) -> Changed:
    """Rule D.3: Remove the value of a random attribute of a random tag; its quotes stay."""

    def value(found: re.Match[bytes]) -> Span:
        return found.start(3) + 1, found.end(3) - 1

    return _remove(lines, random, _attributes(value))


def remove_tag(lines: Lines, random: Random) -> Changed:
    """Rule D.4: Remove a random tag."""
    return _remove(lines, random, lambda line: [tag.span() for tag in _TAG.finditer(line)])


RULES: Final = (
    ("D.1", remove_attribute),
    ("D.2", remove_attribute_name),
    ("D.3", remove_attribute_value),
    ("D.4", remove_tag),
)
"""The rules of this kind, by their labels."""


def _attributes(part: Callable[[re.Match[bytes]], Span]) -> Callable[[bytes], list[Span]]:
    """What finds a part of each attribute of a line; empty parts cannot be removed."""

    def find(line: bytes) -> list[Span]:
        found = (
            part(attribute)
            for tag in _TAG.finditer(line)
            for attribute in _ATTRIBUTE.finditer(line, tag.start(), tag.end())
        )
        return [(start, end) for start, end in found if start < end]

    return find


def _remove(lines: Lines, random: Random, find: Callable[[bytes], list[Span]]) -> Changed:
    """The lines without a random one of the parts that are found in a random line which has any."""
    order = list(range(len(lines)))
    random.shuffle(order)
    for index in order:
        spans = find(lines[index])
        if spans:
            start, end = random.choice(spans)
            changed = lines[index][:start] + lines[index][end:]
            return [*lines[:index], changed, *lines[index + 1 :]]
    return None
