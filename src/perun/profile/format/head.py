"""The head of a profile, read from its JSON piece by piece: memory does not grow with the profile.

Perun writes the head in front, where reading ends with it. In what older releases wrote it stands behind the
resources, which are then passed over without being looked into: only brackets and quotes count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from perun.errors import ProfileError

REGIONS: Final = ("header", "collector_info", "postprocessors", "origin")
"""The regions that are the head."""
SMALL: Final = 1 << 20
"""Bytes of a profile that is decoded as a whole: that is quicker, and finds what is wrong with it."""
MOST: Final = 1 << 20
"""Bytes that a region of the head, or the name of any region, may have in a larger profile."""

_NUMERIC: Final = b"0123456789+-.eE,: \t\r\n"  # what columns of numbers consist of
_LETTERS: Final = b"truefalsnINity"  # true, false, null and what older releases wrote: NaN, Infinity
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_END: Final = re.compile(rb"[,}\] \t\r\n]")
_SPACE: Final = b" \t\r\n"
_USUAL_DEPTH: Final = 16


def decode(pieces: Iterable[bytes], source: str, *, origin: bool = True) -> dict[str, Any]:
    """The regions of the head, checked, in today's layout. No more pieces are taken than are needed.

    :param source: where it comes from, for the message.
    :param origin: whether that is looked for too; a profile need not have one, so all may have to be read.
    :raises ProfileError: as :func:`perun.profile.format.json.decode_head`.
    """
    from perun.profile.format.json import decode_head

    iterator = iter(pieces)
    start = b""
    for piece in iterator:
        start += piece
        if len(start) > SMALL:
            break
    else:
        return decode_head(start, source)
    scanner = _Scanner(start, iterator, source)
    return decode_head(b"{" + b",".join(scanner.regions(origin)) + b"}", source)


class _Scanner:
    """Walks over the regions of a profile.

    :ivar _text: what was read and not passed yet, from `_at` on.
    """

    def __init__(self, text: bytes, pieces: Iterator[bytes], source: str) -> None:
        self._text = text
        self._at = 0
        self._pieces = pieces
        self._source = source

    def regions(self, origin: bool) -> Iterator[bytes]:
        """The key and value of each region of the head, as JSON."""
        missing = set(REGIONS if origin else REGIONS[:3])
        self._expect(b"{")
        while self._peek() != b"}":
            key = self._value()
            self._expect(b":")
            name = key[1:-1].decode("ascii", "replace")
            if name in REGIONS:
                missing.discard(name)
                yield key + b":" + self._value()
            else:
                self._pass()
            if not missing:
                return
            if self._peek() != b",":
                break
            self._at += 1
        self._expect(b"}")

    def _peek(self) -> bytes:
        while True:
            while self._at < len(self._text):
                byte = self._text[self._at : self._at + 1]
                if byte not in _SPACE:
                    return byte
                self._at += 1
            self._more()

    def _expect(self, byte: bytes) -> None:
        found = self._peek()
        if found != byte:
            raise self._wrong(f"expected {byte.decode()!r}, found {found!r}")
        self._at += 1

    def _value(self) -> bytes:
        """The next value, as JSON."""
        kept: list[bytes] = []
        self._pass(kept)
        return b"".join(kept)

    def _pass(self, kept: list[bytes] | None = None) -> None:
        """Pass the next value; `kept` gets its JSON."""
        first = self._peek()
        if first in b"[{":
            self._pass_nested(kept)
            return
        pattern, end = (_STRING.match, 1) if first == b'"' else (_END.search, 0)
        while (match := pattern(self._text, self._at)) is None:
            if len(self._text) - self._at > MOST:
                raise self._wrong(f"a text or number is longer than {MOST} bytes")
            self._more()
        self._take(match.end() if end else match.start(), kept)

    def _pass_nested(self, kept: list[bytes] | None) -> None:
        depth = 0
        while True:
            brackets = self._brackets()
            if brackets is None:
                self._more()
                continue
            closed = brackets.count(b"]") + brackets.count(b"}")
            if len(brackets) > _USUAL_DEPTH or closed >= depth:
                for match in _TOKEN.finditer(self._text, self._at):
                    depth += {91: 1, 123: 1, 93: -1, 125: -1}.get(self._text[match.start()], 0)
                    if not depth:
                        self._take(match.end(), kept)
                        return
            else:
                depth += len(brackets) - 2 * closed
            self._take(len(self._text), kept)
            self._more()

    def _brackets(self) -> bytes | None:
        """The brackets of what was read, without pairs that close each other; None where a text is cut."""
        left = _STRING.sub(b"", self._text[self._at :].translate(None, _NUMERIC))
        if b'"' in left:
            if len(self._text) - self._at > 4 * MOST:
                raise self._wrong(f"a text is longer than {MOST} bytes")
            return None
        brackets = left.translate(None, _LETTERS)
        if brackets.translate(None, b"[]{}"):
            raise self._wrong("what stands there is neither number nor text")
        for _ in range(_USUAL_DEPTH):
            brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        return brackets

    def _take(self, end: int, kept: list[bytes] | None) -> None:
        if kept is not None:
            kept.append(self._text[self._at : end])
            if sum(map(len, kept)) > MOST:
                raise self._wrong(f"its head is longer than {MOST} bytes")
        self._at = end

    def _more(self) -> None:
        piece = next(self._pieces, None)
        if piece is None:
            raise self._wrong("it is cut short")
        self._text = self._text[self._at :] + piece
        self._at = 0

    def _wrong(self, what: str) -> ProfileError:
        return ProfileError(
            f"{self._source}: not JSON in UTF-8, or not a profile: {what}",
            "the file is damaged or no profile; collect it again or restore the file",
        )
