"""The contracts of importers and exporters: what reads and writes the formats of other tools."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Final, NamedTuple, Protocol, TypeVar

from perun.core.errors import ProfileError
from perun.core.process import programs

if TYPE_CHECKING:
    from perun.profile.factory import Profile

P_contra = TypeVar("P_contra", contravariant=True)

MOST: Final = 1 << 28
"""Bytes of a file that is read as a whole."""
MOST_OF_LINE: Final = 1 << 20
HEAD: Final = 1 << 16
PIECE: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


def malformed() -> tuple[type[Exception], ...]:
    """What code raises that reads a file as if it were well-formed; Perun makes an error of it that names the
    file."""
    import gzip
    import struct
    import zlib

    return (
        ArithmeticError, AttributeError, EOFError, LookupError, RecursionError, TypeError, ValueError,
        gzip.BadGzipFile, struct.error, zlib.error,
    )  # fmt: skip


class ImportFile:
    """A file that is imported, unpacked where it is packed by gzip or zstd.

    :ivar name: as the user named it. :ivar path: where it is; None of what comes through a pipe.
    """

    def __init__(
        self, name: str, source: Path | BinaryIO, report: Callable[[str, int, int], None] | None = None
    ) -> None:
        self.name = name
        self.path = source if isinstance(source, Path) else None
        self._source = source
        self._report = report
        self._head: bytes | None = None
        self._pipe: BinaryIO | None = None

    def beside(self, path: Path) -> ImportFile:
        """Another file, with the same progress."""
        return ImportFile(str(path), path, self._report)

    @property
    def head(self) -> bytes:
        """The first :data:`HEAD` bytes at most, as they are unpacked; of a folder none.

        :raises ProfileError: where it cannot be read.
        """
        if self._head is None:
            if self.path is not None and self.path.is_dir():
                self._head = b""
            else:
                with self.open() as file:
                    self._head = self._read(file, HEAD)
        return self._head

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The content; of what comes through a pipe only once, but for its head.

        :raises ProfileError: where it cannot be opened, or is packed by what cannot be unpacked here.
        """
        if not isinstance(self._source, Path):
            if self._pipe is None:
                self._pipe = io.BufferedReader(_unpacked(self._source, self))
                self._head = self._read(self._pipe, HEAD)
            yield io.BufferedReader(_Joined(self._head or b"", self._pipe))
            return
        with ExitStack() as opened:
            try:
                plain = opened.enter_context(self._source.open("rb"))
            except OSError as problem:
                raise ProfileError(f"cannot read {self.name}: {problem.strerror}") from None
            begin = plain.peek(4)[:4]
            if begin.startswith(_GZIP):
                yield opened.enter_context(_gunzipped(plain))
            elif begin == _ZSTD:
                yield opened.enter_context(_zstd(self))
            else:
                yield plain

    def _read(self, file: BinaryIO, size: int) -> bytes:
        try:
            return file.read(size)
        except malformed() as problem:
            raise self.wrong(f"it cannot be unpacked: {problem}") from None

    def pieces(self) -> Iterator[bytes]:
        """The content, a mebibyte at a time, with the progress."""
        total = self.path.stat().st_size if self.path is not None else 0
        done = 0
        with self.open() as file:
            while piece := file.read(PIECE):
                done += len(piece)
                if self._report is not None:
                    self._report(f"reading {self.name}", min(done, total), total)
                yield piece

    def lines(self) -> Iterator[str]:
        """The lines without their ends.

        :raises ProfileError: where one is longer than :data:`MOST_OF_LINE`.
        """
        rest = b""
        for piece in self.pieces():
            *lines, rest = (rest + piece).split(b"\n")
            if len(rest) > MOST_OF_LINE:
                raise self.wrong(f"a line is longer than {MOST_OF_LINE} bytes")
            for line in lines:
                yield line.decode("utf-8", "replace").rstrip("\r")
        if rest:
            yield rest.decode("utf-8", "replace")

    def data(self) -> bytes:
        """The content.

        :raises ProfileError: where it is more than :data:`MOST`.
        """
        with self.open() as file:
            data = file.read(MOST + 1)
        if len(data) > MOST:
            raise self.wrong(f"it has more than {MOST >> 20} MiB", "write a shorter recording")
        return data

    def text(self) -> str:
        """The content as text; what is no UTF-8 is replaced."""
        return self.data().decode("utf-8", "replace")

    def json(self) -> Any:
        """The value of the JSON.

        :raises ProfileError: where it is none.
        """
        import json

        try:
            return json.loads(self.data())
        except ValueError as problem:
            raise self.wrong(f"it is no JSON: {problem}") from None

    def wrong(self, reason: str, hint: str = "") -> ProfileError:
        """The error for this file.

        :param hint: what to do; without it, to look at the format.
        """
        return ProfileError(
            f"{self.name}: {reason}", hint or "is it whole, and in the format that is named or guessed?"
        )


def _unpacked(pipe: BinaryIO, about: ImportFile) -> Any:
    buffered = pipe if isinstance(pipe, io.BufferedReader) else io.BufferedReader(pipe)  # type: ignore[type-var]
    begin = buffered.peek(4)[:4]
    if begin == _ZSTD:
        raise about.wrong("it is packed by zstd", "unpack it first: zstd -dc FILE | perun import ... -")
    return _gunzipped(buffered) if begin.startswith(_GZIP) else buffered


def _gunzipped(file: Any) -> Any:
    import gzip  # every plugin loads the contracts: what few need is not loaded with them

    return gzip.GzipFile(fileobj=file)


@contextmanager
def _zstd(file: ImportFile) -> Iterator[BinaryIO]:
    """What the program zstd unpacks."""
    try:
        process = programs.Program(
            ["zstd", "-dcq", str(file.path)], stdout=programs.PIPE, stderr=programs.DEVNULL
        )
    except OSError:
        raise file.wrong(
            "it is packed by zstd, which is not installed", "install it: apt-get install zstd"
        ) from None
    with process:
        assert process.stdout is not None
        yield process.stdout  # type: ignore[misc]
        process.stdout.close()  # who has read enough ends it


class _Joined(io.RawIOBase):
    """What was read of a stream already, and the rest of it."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first = first
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece, self._first = self._first[: len(buffer)], self._first[len(buffer) :]
        piece = piece or self._rest.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


class Imported(NamedTuple):
    """One profile of a file.

    :param version: the commit that the file says it was measured of; empty where it says none.
    :param moment: when it was measured, in seconds since 1970; None where the file does not say it.
    :param means: whether the file has no samples, only what somebody made of them.
    """

    profile: Profile
    version: str = ""
    moment: float | None = None
    means: bool = False


class ImportContext(NamedTuple):
    """What an importer may use.

    `note` tells the user one line; `environ` is the environment for a program that reads the file for it;
    `scratch` is an empty folder, which is removed afterwards; `project` is the folder with the sources.
    """

    note: Callable[[str], None]
    scratch: Path
    environ: Mapping[str, str] = MappingProxyType({})
    project: Path | None = None


class Importer(Protocol[P_contra]):
    """Reads files of another tool. Of `name`, `help` and `Params` see :class:`perun.plugin.api.Plugin`.

    What it raises of :func:`malformed` becomes an error that names the file, so it may read the file as if
    that were well-formed. It needs bounded memory and time, whatever the file holds.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    Params: ClassVar[type]

    def recognizes(self, head: bytes, path: str) -> bool:
        """Whether a file is of the format, by its beginning and its name: no other importer says yes."""
        ...

    def read(self, file: ImportFile, params: P_contra, ctx: ImportContext) -> Iterator[Imported]:
        """The profiles of a file: one of each benchmark and type, or of each recording.

        The header has type and units, and the command as far as the file says it.
        """
        ...


class Exporter(Protocol[P_contra]):
    """Writes a profile for another tool. Of `name`, `help` and `Params` see
    :class:`perun.plugin.api.Plugin`; `suffix` is how the names of such files end, e.g. `.pb.gz`."""

    name: ClassVar[str]
    help: ClassVar[str]
    suffix: ClassVar[str]
    Params: ClassVar[type]

    def write(self, profile: Profile, params: P_contra, note: Callable[[str], None]) -> Iterator[bytes]:
        """The file, piece by piece.

        :raises ProfileError: where the profile has not what the format needs, e.g. call stacks.
        """
        ...
