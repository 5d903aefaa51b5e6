"""Rules for text files (manual 9.2).

Each takes the lines of a file, with their line ends, of which the last one may have none, and returns new
lines; None if there is nothing that it could change. `random` alone decides what it changes. Characters are
bytes: the rules do not depend on an encoding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

MOST_WHITESPACES: Final = 1000
"""How many whitespaces a rule adds at most."""

MOST_REPETITIONS: Final = 10
"""How often a word is repeated at most."""

_WORD: Final = re.compile(rb"\S+")
_SPACES: Final = re.compile(rb"[^\S\r\n]+")
_CHARACTERS: Final = bytes(range(0x20, 0x7F))

Lines = Sequence[bytes]
Changed = list[bytes] | None


def double_line(lines: Lines, random: Random) -> Changed:
    """Rule T.1: Double the size of a line."""
    return _change(lines, random, _has_text, lambda text: text + text)


def duplicate_line(lines: Lines, random: Random) -> Changed:
    """Rule T.2: Duplicate a line."""
    index = _choose(lines, random)
    if index is None:
        return None
    line = lines[index]
    return _put(lines, index, line if _end(line) else line + b"\n", line)


def divide_line(lines: Lines, random: Random) -> Changed:
    """Rule T.3: Divide a line by a newline at a random place."""
    index = _choose(lines, random)
    if index is None:
        return None
    text, end = _split(lines[index])
    place = random.randint(0, len(text))
    return _put(lines, index, text[:place] + (end or b"\n"), text[place:] + end)


def change_character(lines: Lines, random: Random) -> Changed:
    """Rule T.4: Change a random character of a random line to another one."""

    def changed(text: bytes) -> bytes:
        place = random.randrange(len(text))
        other = random.choice(_CHARACTERS.replace(text[place : place + 1], b""))
        return text[:place] + bytes([other]) + text[place + 1 :]

    return _change(lines, random, _has_text, changed)


def repeat_word(lines: Lines, random: Random) -> Changed:
    """Rule T.5: Repeat a random word of a random line several times."""

    def repeated(text: bytes) -> bytes:
        word = random.choice(list(_WORD.finditer(text)))
        times = random.randint(1, MOST_REPETITIONS)
        return text[: word.end()] + (b" " + word.group()) * times + text[word.end() :]

    return _change(lines, random, _has_word, repeated)


def sort_line(lines: Lines, random: Random) -> Changed:
    """Rule T.6: Sort the words, or the numbers, of a random line."""
    return _sort(lines, random, reverse=False)


def sort_line_in_reverse(lines: Lines, random: Random) -> Changed:
    """Rule T.7: Sort the words, or the numbers, of a random line in reverse."""
    return _sort(lines, random, reverse=True)


def append_whitespaces(lines: Lines, random: Random) -> Changed:
    """Rule T.8: Append a random number of whitespaces to a random line."""
    return _change(lines, random, _any, lambda text: text + _whitespaces(random))


def prepend_whitespace(lines: Lines, random: Random) -> Changed:
    """Rule T.9: Prepend a random number of whitespaces to a random line."""
    return _change(lines, random, _any, lambda text: _whitespaces(random) + text)


def insert_whitespace(lines: Lines, random: Random) -> Changed:
    """Rule T.10: Insert a random number of whitespaces at a random place of a random line."""

    def inserted(text: bytes) -> bytes:
        place = random.randint(0, len(text))
        return text[:place] + _whitespaces(random) + text[place:]

    return _change(lines, random, _any, inserted)


def repeat_whitespace(lines: Lines, random: Random) -> Changed:
    """Rule T.11: Repeat a whitespace of a random line a random number of times."""

    def repeated(text: bytes) -> bytes:
        spaces = random.choice(list(_SPACES.finditer(text)))
        more = spaces.group()[-1:] * _up_to(MOST_WHITESPACES, random)
        return text[: spaces.end()] + more + text[spaces.end() :]

    return _change(lines, random, _has_spaces, repeated)


def bloat_words(lines: Lines, random: Random) -> Changed:
    """Rule T.12: Remove the whitespaces at a random place of a random line."""

    def bloated(text: bytes) -> bytes:
        spaces = random.choice(list(_SPACES.finditer(text)))
        return text[: spaces.start()] + text[spaces.end() :]

    return _change(lines, random, _has_spaces, bloated)


def delete_line(lines: Lines, random: Random) -> Changed:
    """Rule T.13: Remove a random line."""
    index = _choose(lines, random)
    return None if index is None else _put(lines, index)


def delete_word(lines: Lines, random: Random) -> Changed:
    """Rule T.14: Remove a random word of a random line, with the whitespace after it."""

    def without(text: bytes) -> bytes:
        word = random.choice(list(_WORD.finditer(text)))
        end = word.end() + (word.end() < len(text))
        return text[: word.start()] + text[end:]

    return _change(lines, random, _has_word, without)


def delete_character(lines: Lines, random: Random) -> Changed:
    """Rule T.15: Remove a random character of a random word of a random line."""

    def without(text: bytes) -> bytes:
        word = random.choice(list(_WORD.finditer(text)))
        place = random.randrange(word.start(), word.end())
        return text[:place] + text[place + 1 :]

    return _change(lines, random, _has_word, without)


RULES: Final = (
    ("T.1", double_line),
    ("T.2", duplicate_line),
    ("T.3", divide_line),
    ("T.4", change_character),
    ("T.5", repeat_word),
    ("T.6", sort_line),
    ("T.7", sort_line_in_reverse),
    ("T.8", append_whitespaces),
    ("T.9", prepend_whitespace),
    ("T.10", insert_whitespace),
    ("T.11", repeat_whitespace),
    ("T.12", bloat_words),
    ("T.13", delete_line),
    ("T.14", delete_word),
    ("T.15", delete_character),
)
"""The rules of this kind, by their labels."""


def _change(
    lines: Lines, random: Random, fits: Callable[[bytes], bool], change: Callable[[bytes], bytes]
) -> Changed:
    """The lines with the text of a random one changed that fits; its line end stays."""
    index = _choose(lines, random, fits)
    if index is None:
        return None
    text, end = _split(lines[index])
    return _put(lines, index, change(text) + end)


def _sort(lines: Lines, random: Random, *, reverse: bool) -> Changed:
    def in_order(words: list[bytes]) -> list[bytes]:
        return sorted(words, key=float if all(map(_is_number, words)) else None, reverse=reverse)

    def sorted_(text: bytes) -> bytes:
        words = [*in_order(_WORD.findall(text)), b""]
        # The whitespaces stay where they are.
        return b"".join(space + word for space, word in zip(_WORD.split(text), words, strict=True))

    def is_unsorted(text: bytes) -> bool:
        words = _WORD.findall(text)
        return len(words) > 1 and in_order(words) != words

    return _change(lines, random, is_unsorted, sorted_)


def _is_number(word: bytes) -> bool:
    try:
        number = float(word)
    except ValueError:
        return False
    return number == number


def _choose(lines: Lines, random: Random, fits: Callable[[bytes], bool] | None = None) -> int | None:
    """A random line that fits; None if there is none. Few tries find one in most files, of whatever size."""
    if not lines:
        return None
    for _ in range(8):
        index = random.randrange(len(lines))
        if fits is None or fits(_split(lines[index])[0]):
            return index
    fitting = [index for index, line in enumerate(lines) if fits is None or fits(_split(line)[0])]
    return random.choice(fitting) if fitting else None


def _put(lines: Lines, index: int, *new: bytes) -> list[bytes]:
    """The lines, with others in the place of one."""
    return [*lines[:index], *new, *lines[index + 1 :]]


def _split(line: bytes) -> tuple[bytes, bytes]:
    """The text of a line, and its line end."""
    end = _end(line)
    return line[: len(line) - len(end)], end


def _end(line: bytes) -> bytes:
    if line.endswith(b"\r\n"):
        return b"\r\n"
    return line[-1:] if line.endswith((b"\n", b"\r")) else b""


def _whitespaces(random: Random) -> bytes:
    """A random number of one whitespace: mostly blanks."""
    return random.choice((b" ", b" ", b" ", b"\t")) * _up_to(MOST_WHITESPACES, random)


def _up_to(most: int, random: Random) -> int:
    """From 1 to `most`; small numbers are as likely as large ones: not all programs take large inputs."""
    return random.randint(1, random.choice((most // 100, most // 10, most)))


def _any(text: bytes) -> bool:
    return True


def _has_text(text: bytes) -> bool:
    return bool(text)


def _has_word(text: bytes) -> bool:
    return _WORD.search(text) is not None


def _has_spaces(text: bytes) -> bool:
    return _SPACES.search(text) is not None


# Rules for files of the XML family: XML, SVG, XHTML, XUL, HTML (manual 9.2). They see tags and attributes as
# text, without a parser: mutations need not be well-formed.

_TAG: Final = re.compile(rb"<[/!?A-Za-z_:](?:\"[^\"<]*\"|'[^'<]*'|[^<>\"'])*>")
_ATTRIBUTE: Final = re.compile(rb"(?<!\s)\s+([A-Za-z_:][^\s=<>\"'/]*)(\s*=\s*)(\"[^\"]*\"|'[^']*')")

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


XML: Final = (
    ("D.1", remove_attribute),
    ("D.2", remove_attribute_name),
    ("D.3", remove_attribute_value),
    ("D.4", remove_tag),
)
"""The rules for this family, by their labels."""


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
