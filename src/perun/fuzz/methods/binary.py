"""Rules for inputs as bytes: they make new bytes, or None if there is none to change.

Those for binary files are of the manual (9.2) and change one place. Others move whole parts, of the input
itself or of inputs that were found before, so that what was found in two comes together; and others write
words of a dictionary: what means something to the program, as keywords of a language.

A dictionary is a text file with a word on each line: as it is, or in double quotes, where `\\xHH`, `\\\\` and
`\\"` stand for bytes; a name and `=` may go before the quotes, as in the dictionaries of AFL and libFuzzer.
Lines that begin with `#` are comments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from perun.core.errors import UsageError
from perun.core.regular import read_regular
from perun.fuzz.patterns import candidates

Changed = bytes | None


def remove_zero_byte(data: bytes, random: Random) -> Changed:
    """Rule B.1: Remove a random zero byte."""
    count = data.count(0)
    if not count:
        return None
    place = -1
    for _ in range(random.randint(1, count)):
        place = data.index(0, place + 1)
    return data[:place] + data[place + 1 :]


def insert_zero_byte(data: bytes, random: Random) -> Changed:
    """Rule B.2: Insert a zero byte at a random place."""
    return _inserted(data, 0, random)


def insert_byte(data: bytes, random: Random) -> Changed:
    """Rule B.3: Insert a random byte at a random place."""
    return _inserted(data, random.randrange(256), random)


def remove_byte(data: bytes, random: Random) -> Changed:
    """Rule B.4: Remove a random byte."""
    if not data:
        return None
    place = random.randrange(len(data))
    return data[:place] + data[place + 1 :]


def swap_byte(data: bytes, random: Random) -> Changed:
    """Rule B.5: Swap two random bytes of two random lines."""
    lines = data.splitlines(keepends=True)
    if len(data) < 2:
        return None
    places = []
    for _ in range(2):
        index = random.randrange(len(lines))
        start = sum(map(len, lines[:index]))
        places.append(start + random.randrange(len(lines[index])))
    first, second = places
    if data[first] == data[second]:
        return None
    made = bytearray(data)
    made[first], made[second] = data[second], data[first]
    return bytes(made)


def flip_bit(data: bytes, random: Random) -> Changed:
    """Rule B.6: Flip a random bit."""
    if not data:
        return None
    made = bytearray(data)
    made[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(made)


RULES: Final = (
    ("B.1", remove_zero_byte),
    ("B.2", insert_zero_byte),
    ("B.3", insert_byte),
    ("B.4", remove_byte),
    ("B.5", swap_byte),
    ("B.6", flip_bit),
)
"""The rules of this kind, by their labels."""


def _inserted(data: bytes, byte: int, random: Random) -> bytes:
    place = random.randint(0, len(data))
    return data[:place] + bytes([byte]) + data[place:]


# Parts of inputs.

LARGEST_PART: Final = 4096
"""Most bytes of a part that is repeated or inserted."""
_PATTERNED: Final = 2048
"""Bytes of an input in which patterns are looked for."""
_SHORTEST: Final = 16
"""Bytes that the pattern of a shorter input may be half of."""
_TIMES: Final = (1, 4, 16)
"""How often a part is repeated at most: where the cost explodes, only once more is not too much."""


def repeat_part(data: bytes, random: Random, corpus: Sequence[bytes]) -> Changed:
    """Rule S.1: Repeat a random part of the input several times."""
    part = _part(data, random)
    if part is None:
        return None
    start, end = part
    times = random.randint(1, random.choice(_TIMES))
    return data[:end] + data[start:end] * times + data[end:]


def remove_part(data: bytes, random: Random, corpus: Sequence[bytes]) -> Changed:
    """Rule S.2: Remove a random part of the input."""
    part = _part(data, random)
    return None if part is None else data[: part[0]] + data[part[1] :]


def splice(data: bytes, random: Random, corpus: Sequence[bytes]) -> Changed:
    """Rule S.3: Join the beginning of the input and the end of another one."""
    other = _other(data, random, corpus)
    if other is None:
        return None
    return data[: random.randint(0, len(data))] + other[random.randint(0, len(other)) :]


def insert_part(data: bytes, random: Random, corpus: Sequence[bytes]) -> Changed:
    """Rule S.4: Insert a random part of another input at a random place."""
    other = _other(data, random, corpus)
    part = None if other is None else _part(other, random)
    if other is None or part is None:
        return None
    place = random.randint(0, len(data))
    return data[:place] + other[slice(*part)] + data[place:]


def repeat_pattern(data: bytes, random: Random, corpus: Sequence[bytes]) -> Changed:
    """Rule S.5: Replace the input by one thing of it, repeated, or by words in order or different ones."""
    found = candidates(data[:_PATTERNED])
    if not found:
        return None
    pattern = random.choice(found)
    return pattern.input(pattern.largest(int(max(len(data), _SHORTEST) * 2 ** random.uniform(-1, 3))))


SPLICING: Final = (
    ("S.1", repeat_part),
    ("S.2", remove_part),
    ("S.3", splice),
    ("S.4", insert_part),
    ("S.5", repeat_pattern),
)
"""The rules of this kind, by their labels."""


def _part(data: bytes, random: Random) -> tuple[int, int] | None:
    """Where a random part starts and ends; short ones are as likely as long ones."""
    if not data:
        return None
    longest = min(len(data), LARGEST_PART)
    size = random.randint(1, max(1, int(longest ** random.random())))
    start = random.randint(0, len(data) - size)
    return start, start + size


def _other(data: bytes, random: Random, corpus: Sequence[bytes]) -> bytes | None:
    others = [one for one in corpus if one and one != data]
    return random.choice(others) if others else None


# Words of a dictionary.

LARGEST: Final = 1 << 20
"""Most bytes of a dictionary."""
_MOST: Final = 16
_QUOTED: Final = re.compile(rb'(?:[\w.@-]+\s*=\s*)?"((?:[^"\\]|\\.)*)"\Z')
_ESCAPE: Final = re.compile(rb'\\(?:x([0-9A-Fa-f]{2})|([\\"nrt]))')
_LETTERS: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def insert_word(data: bytes, random: Random, words: Sequence[bytes]) -> bytes:
    """Rule W.1: Insert a word of the dictionary at a random place, once or several times."""
    place = random.randint(0, len(data))
    times = random.choice((1, 1, random.randint(1, _MOST)))
    return data[:place] + random.choice(words) * times + data[place:]


def overwrite_by_word(data: bytes, random: Random, words: Sequence[bytes]) -> bytes | None:
    """Rule W.2: Write a word of the dictionary over as many bytes at a random place."""
    word = random.choice(words)
    if len(word) > len(data):
        return None
    place = random.randint(0, len(data) - len(word))
    return data[:place] + word + data[place + len(word) :]


WORDS: Final = (
    ("W.1", insert_word),
    ("W.2", overwrite_by_word),
)
"""The rules of this kind, by their labels."""


def read_words(path: Path) -> list[bytes]:
    """The words of a dictionary.

    :raises UsageError: if it cannot be read, has no word, or a line of it is wrong; the message names the
        line.
    """
    try:
        lines = read_regular(path, LARGEST).splitlines()
    except OSError as problem:
        raise UsageError(f"cannot read the dictionary {path}: {problem.strerror}") from None
    words = []
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith(b"#"):
            continue
        word = _word(line)
        if word is None:
            raise UsageError(
                f"{path}:{number}: the word has an opening quote, but no closing one, or a wrong escape",
                r'write "word", or name="word"; inside, \\, \" and \xHH stand for bytes',
            )
        words.append(word)
    if not words:
        raise UsageError(f"the dictionary {path} has no word", "write one word on each line")
    return list(dict.fromkeys(words))


def _word(line: bytes) -> bytes | None:
    """The word of a line; None if it is wrong."""
    quoted = _QUOTED.match(line)
    if quoted is None:
        return None if line.startswith(b'"') or re.match(rb'[\w.@-]+\s*="', line) else line
    text = quoted[1]
    if b"\\" in _ESCAPE.sub(b"", text) or not text:
        return None
    return _ESCAPE.sub(_unescape, text)


def _unescape(found: re.Match[bytes]) -> bytes:
    if found[1] is not None:
        return bytes.fromhex(found[1].decode())
    return _LETTERS.get(found[2], found[2])
