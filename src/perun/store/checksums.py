"""Checksums of files whose own format has no room for one: pending profiles and lists of changes.

They are stored in `.perun/sums`, which other releases do not read. Lines are only appended to its files.
The line of a file is written before the file takes its place, so that after an interruption either the old
line holds or the new one. It is not flushed to the disk: a file whose line is lost is not verified, no more.

A line holds the CRC-32 of what follows, the SHA-1 of the file, its modification time (ns), its name as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple
from zlib import crc32

from perun.store.files import ON_DISK, Files

FOLDER = "sums"
"""Of `.perun`."""
LIMIT = 1 << 30
"""Bytes of a file of checksums that are read at most."""
_COMPACT_FROM = 1 << 16
"""Size in bytes below which a file of checksums is not compacted."""
_LINES_KEPT = 2
"""Lines kept of each name: that of the file that is there, and of one that is about to take its place."""

Verdict = Literal["intact", "unknown", "damaged", "changed"]


class NotedChecksum(NamedTuple):
    """What was noted of a file: SHA-1 in hexadecimal digits, modification time in nanoseconds."""

    sha1: str
    time: int


class Noted(NamedTuple):
    """All checksums by the names of files, the newest last, and the number of lines that are damaged."""

    checksums: dict[str, list[NotedChecksum]]
    damaged: int

    def verdict(self, name: str, sha1: str, time: int) -> Verdict:
        """Whether a file with this SHA-1 and modification time (ns) is what was written.

        `damaged`: its content differs though it was not written to since; `changed`: it was written to by
        another program; `unknown`: Perun did not write it.
        """
        noted = self.checksums.get(name)
        if not noted:
            return "unknown"
        if any(one.sha1 == sha1 for one in noted):
            return "intact"
        return "damaged" if any(one.time == time for one in noted) else "changed"


class Checksums:
    """The checksums of the files of one kind; whoever writes holds the lock of the repository.

    :param path: their file. :param exists: whether there is a file of that name, of which they must be kept.
    :param files: those of the store.
    """

    def __init__(self, path: Path, exists: Callable[[str], bool], files: Files = ON_DISK) -> None:
        self.path = path
        self._files = files
        self._exists = exists

    def note(self, name: str, sha1: str, time: int) -> None:
        """Note the SHA-1 of a file that is about to get its name; if that fails, it is not verified."""
        # The file itself is what counts, so a missing checksum is no failure.
        with suppress(OSError):
            # The line break ends a line that a killed writer left unfinished.
            size = self._files.append(self.path, b"\n" + _line(name, NotedChecksum(sha1, time)))
            if size > _COMPACT_FROM:
                self._compact_where_doubled(size)

    def read(self) -> Noted:
        """All checksums; none if there is no file, or it cannot be read."""
        found: dict[str, list[NotedChecksum]] = {}
        damaged = 0
        data = b""
        with suppress(OSError):
            data = self._files.read(self.path, LIMIT)
        for line in data.split(b"\n"):
            if not line or line.startswith(b"#"):
                continue
            parsed = _parse(line)
            if parsed is None:
                damaged += 1
            else:
                found.setdefault(parsed[0], []).append(parsed[1])
        return Noted(found, damaged)

    def compact(self) -> None:
        """Forget files that are gone, older checksums and damaged lines."""
        noted = self.read().checksums
        kept = {name: known[-_LINES_KEPT:] for name, known in noted.items() if self._exists(name)}
        lines = b"".join(_lines(kept.items()))
        self._files.write(self.path, b"# %d\n" % len(lines) + lines)

    def _compact_where_doubled(self, size: int) -> None:
        # Only when the size has doubled, so that the work for each line is constant on average.
        with self._files.opened(self.path, LIMIT) as file:
            first = file.readline(32)
        before = int(first[2:]) if first[:2] == b"# " and first[2:].strip().isdigit() else 0
        if size > 2 * max(before, _COMPACT_FROM):
            self.compact()


def _lines(noted: Iterable[tuple[str, list[NotedChecksum]]]) -> Iterable[bytes]:
    return (_line(name, one) for name, known in noted for one in known)


def _line(name: str, one: NotedChecksum) -> bytes:
    content = f"{one.sha1} {one.time} {json.dumps(name)}".encode()
    return b"%08x %s\n" % (crc32(content), content)


def _parse(line: bytes) -> tuple[str, NotedChecksum] | None:
    check, _, content = line.partition(b" ")
    if check != b"%08x" % crc32(content):
        return None
    try:
        sha1, time, name = content.decode().split(" ", 2)
        return json.loads(name), NotedChecksum(sha1, int(time))
    except (ValueError, RecursionError):
        return None
