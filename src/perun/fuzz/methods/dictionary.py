"""Rules with the words of a dictionary: what means something to the program, as keywords of a language.

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


RULES: Final = (
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
