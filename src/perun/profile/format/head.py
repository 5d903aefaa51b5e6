"""The head of a profile, read from its JSON piece by piece: memory does not grow with the profile.

Perun writes the head in front, where reading ends with it. In what older releases wrote it stands behind the
resources, which are then skipped without being decoded: only brackets and quotes count.
"""

from __future__ import annotations

import io
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from perun.core.errors import ProfileError
from perun.profile.format import columnar
from perun.profile.format.columnar import is_columnar
from perun.profile.format.columns import CompressedColumn, is_packed
from perun.profile.format.encoding import frames_in
from perun.profile.format.json import SIZE_LIMIT, decode_head, dumps_object, loads, pending_pieces
from perun.profile.uid import may_have_uid

if TYPE_CHECKING:
    from perun.profile.format.core import Profile


REGIONS: Final = ("header", "collector_info", "postprocessors", "origin")
"""The regions that are the head."""
DECODED_WHOLE: Final = 1 << 20
"""Size in bytes up to which a profile is decoded as a whole: faster, and it names what is wrong in it."""
MAX_BYTES: Final = 1 << 20
"""Largest size of a region of the head, or of the name of any region, in a larger profile."""

_NUMERIC: Final = b"0123456789+-.eE,: \t\r\n"  # what columns of numbers consist of
_CONSTANTS: Final = b"truefalsnINity"  # true, false, null and what older releases wrote: NaN, Infinity
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_END: Final = re.compile(rb"[,}\] \t\r\n]")
_SPACE: Final = b" \t\r\n"
_MAX_SIMPLE_DEPTH: Final = 16


def decode(pieces: Iterable[bytes], source: str, *, origin: bool = True) -> dict[str, Any]:
    """The regions of the head, checked, in today's layout. No more pieces are taken than are needed.

    :param source: where it comes from, for the message.
    :param origin: whether to look for the origin too; without one, the whole profile is read.
    :raises ProfileError: as :func:`perun.profile.format.json.decode_head`.
    """
    iterator = iter(pieces)
    first = next(iterator, b"")
    rest = _to_line_end(first, iterator) if is_columnar(first) else chain([first], iterator)
    start = b""
    iterator = iter(rest)
    for piece in iterator:
        start += piece
        if len(start) > DECODED_WHOLE:
            break
    else:
        return decode_head(start, source)
    scanner = _Scanner(start, iterator, source)
    return decode_head(b"{" + b",".join(scanner.regions(origin)) + b"}", source)


def _to_line_end(piece: bytes, following: Iterator[bytes]) -> Iterator[bytes]:
    """The first line, piece by piece: the head of a profile by columns, whose numbers are no JSON."""
    while piece:
        line, end, _ = piece.partition(b"\n")
        yield line + end
        if end:
            return
        piece = next(following, b"")


class _Scanner:
    """Walks over the regions of a profile.

    :ivar _text: what was read; from `_at` on it is still to be scanned.
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
                self._skip()
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
            self._read_more()

    def _expect(self, byte: bytes) -> None:
        found = self._peek()
        if found != byte:
            raise self._error(f"expected {byte.decode()!r}, found {found!r}")
        self._at += 1

    def _value(self) -> bytes:
        """The next value, as JSON."""
        kept: list[bytes] = []
        self._skip(kept)
        return b"".join(kept)

    def _skip(self, kept: list[bytes] | None = None) -> None:
        """Skip the next value; its JSON is appended to `kept`."""
        first = self._peek()
        if first in b"[{":
            self._skip_nested(kept)
            return
        pattern, end = (_STRING.match, 1) if first == b'"' else (_END.search, 0)
        while (match := pattern(self._text, self._at)) is None:
            if len(self._text) - self._at > MAX_BYTES:
                raise self._error(f"a text or number is longer than {MAX_BYTES} bytes")
            self._read_more()
        self._advance(match.end() if end else match.start(), kept)

    def _skip_nested(self, kept: list[bytes] | None) -> None:
        depth = 0
        while True:
            brackets, end = self._brackets()
            closed = brackets.count(b"]") + brackets.count(b"}")
            if len(brackets) > _MAX_SIMPLE_DEPTH or closed >= depth:
                for match in _TOKEN.finditer(self._text, self._at, end):
                    depth += {91: 1, 123: 1, 93: -1, 125: -1}.get(self._text[match.start()], 0)
                    if not depth:
                        self._advance(match.end(), kept)
                        return
            else:
                depth += len(brackets) - 2 * closed
            self._advance(end, kept)
            self._read_more()

    def _brackets(self) -> tuple[bytes, int]:
        """The brackets of the text that was read, without pairs that close each other; and where it ends, or
        where the string begins within which it does."""
        end = len(self._text)
        left = _STRING.sub(b"", self._text[self._at :].translate(None, _NUMERIC))
        if b'"' in left:
            end = self._last_quote()
            if len(self._text) - end > MAX_BYTES:
                raise self._error(f"a text is longer than {MAX_BYTES} bytes")
            left = left.partition(b'"')[0]
        brackets = left.translate(None, _CONSTANTS)
        if brackets.translate(None, b"[]{}"):
            raise self._error("it holds something that is neither number nor text")
        for _ in range(_MAX_SIMPLE_DEPTH):
            brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        return brackets, end

    def _last_quote(self) -> int:
        """Where the string begins within which the text ends: at its last quote that is not escaped."""
        end = len(self._text)
        while (end := self._text.rfind(b'"', self._at, end)) > self._at:
            escapes = end
            while escapes > self._at and self._text[escapes - 1 : escapes] == b"\\":
                escapes -= 1
            if (end - escapes) % 2 == 0:
                return end
        return self._at

    def _advance(self, end: int, kept: list[bytes] | None) -> None:
        if kept is not None:
            kept.append(self._text[self._at : end])
            if sum(map(len, kept)) > MAX_BYTES:
                raise self._error(f"its head is longer than {MAX_BYTES} bytes")
        self._at = end

    def _read_more(self) -> None:
        piece = next(self._pieces, None)
        if piece is None:
            raise self._error("it is cut short")
        self._text = self._text[self._at :] + piece
        self._at = 0

    def _error(self, what: str) -> ProfileError:
        return ProfileError(
            f"{self._source}: not JSON in UTF-8, or not a profile: {what}",
            "the file is damaged or no profile; collect it again or restore the file",
        )


# In which layout a profile is stored: JSON, which every release reads, or by columns where it is large.

COLUMNAR_FROM: Final = 1 << 20
"""Numbers in columns from which a profile is stored by columns, if no configuration says otherwise.

Up to there JSON has 10 MB, and is read in 0.2 s: most profiles stay what older releases and other tools read.
"""

FRAMES_FROM: Final = 1 << 12
"""Frames in the call stacks of all groups from which a job file is by columns, where each stack stands once.

JSON spells so many in half a megabyte, and those of larger profiles in several.
"""

_START: Final = 64
_PIECE: Final = 1 << 18


def is_stored_by_columns(profile: Profile, columnar_from: int) -> bool:
    """Whether the profile has at least `columnar_from` numbers in columns; 0 stands for never."""
    resources = profile.regions().get("resources")
    return (
        0
        < columnar_from
        <= sum(
            len(column)
            for columns in (resources.values() if isinstance(resources, dict) else ())
            for column in (columns.values() if isinstance(columns, Mapping) else ())
            if isinstance(column, CompressedColumn) or is_packed(column)
        )
    )


def object_body(profile: Profile, columnar_from: int) -> bytes:
    """The profile as the body of an object (manual 13.2.2), without `origin`.

    :raises ProfileError: if a value has no JSON, or the file that the profile was read from is damaged.
    """
    if not is_stored_by_columns(profile, columnar_from):
        return dumps_object(profile)
    regions = profile.regions()
    regions.pop("origin", None)
    buffer = io.BytesIO()  # hands out what it holds without a copy
    buffer.writelines(columnar.pieces(regions))
    return buffer.getvalue()


def job_pieces(profile: Profile, columnar_from: int) -> Iterator[bytes]:
    """The profile as a job file, piece by piece; errors as :func:`object_body`.

    Call stacks that repeat are a reason for columns here only: an object is compressed.
    """
    if is_stored_by_columns(profile, columnar_from) or (columnar_from and _has_many_frames(profile)):
        return columnar.pieces(profile.regions())
    return pending_pieces(profile)


def _has_many_frames(profile: Profile) -> bool:
    return frames_in(profile.regions().get("resource_type_map")) >= FRAMES_FROM


def load(
    file: BinaryIO, source: str, *, limit: int = SIZE_LIMIT, uids: Container[str] | None = None
) -> Profile:
    """The profile in a file, in any layout that Perun reads.

    :param source: where it comes from, for the message. :param limit: number of bytes that are read at most.
    :param uids: as for :func:`perun.profile.format.columnar.load`.
    :raises ProfileError: if it holds no profile, or is larger than `limit`.
    """
    if _is_columnar(file):
        return columnar.load(file, source, limit=limit, uids=uids)
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    profile = loads(file.read(min(size, limit) + 1), source, limit=limit)
    return profile if uids is None else with_uids(profile, uids)


def verify(file: BinaryIO, source: str, *, limit: int, read_whole: int) -> bool:
    """Check that the file holds a profile; of JSON of more than `read_whole` bytes only the head.

    :return: whether all of it was checked.
    :raises ProfileError: as :func:`load`.
    """
    if _is_columnar(file):
        columnar.verify(file, source, limit=limit)
        return True
    data = file.read(read_whole + 1)
    if len(data) <= read_whole:
        loads(data, source, limit=limit)
        return True
    decode(chain([data], iter(lambda: file.read(_PIECE), b"")), source)
    return False


def _is_columnar(file: BinaryIO) -> bool:
    found = columnar.is_columnar(file.read(_START))
    file.seek(0)
    return found


def with_uids(profile: Profile, uids: Container[str]) -> Profile:
    """The profile with those groups of resources only that have one of these uids, flattened.

    A group whose resources differ in their uids is kept.
    """
    regions = profile.regions()
    constants = regions["resource_type_map"]
    kept = [key for key in regions["resources"] if may_have_uid(constants.get(key, {}), uids)]
    for region in ("resources", "resource_type_map"):
        regions[region] = {key: regions[region][key] for key in kept if key in regions[region]}
    return type(profile)(regions)
