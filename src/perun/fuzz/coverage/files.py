"""Counters in `.gcda` files, which programs compiled with `--coverage` write when they end."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy

from perun.fuzz.coverage.elf import Function
from perun.fuzz.coverage.gcno import DamagedNotes, Reader

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FUNCTION: Final = 0x01000000
_COUNTERS: Final = 0x01A10000


class CounterFiles:
    """A folder that counters are written to, instead of beside the objects of the program.

    :ivar environ: what the program needs in its environment for it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.environ = {"GCOV_PREFIX": str(folder), "GCOV_PREFIX_STRIP": "0"}
        self._places: dict[tuple[str, tuple[int, int, int]], slice] = {}
        self._size = 0

    def clear(self) -> None:
        """Remove what a run has written: the next one would add to it."""
        self._folder.mkdir(exist_ok=True)
        for path in self._paths():
            path.unlink()

    def functions(self) -> list[Function]:
        """The functions of the files that the last run has written."""
        return [
            Function(notes, stamp, key, 0, len(values))
            for notes, stamp, key, values in self._read()
        ]  # fmt: skip

    def expect(self, functions: list[Function]) -> None:
        """Say of which functions :meth:`counters` are, and in which order."""
        for function in functions:
            self._places[function.notes, function.key] = slice(self._size, self._size + function.counters)
            self._size += function.counters

    def counters(self) -> NDArray[numpy.int64]:
        """The counters of the last run, 0 where it has written none."""
        found = numpy.zeros(self._size, numpy.int64)
        for notes, _, key, values in self._read():
            place = self._places.get((notes, key))
            if place is not None and place.stop - place.start == len(values):
                found[place] += values
        return found

    def _paths(self) -> list[Path]:
        """The files in a stable order. Folders are kept between runs, and few."""
        return sorted(
            Path(folder, name)
            for folder, _, names in os.walk(self._folder)
            for name in names
            if name.endswith(".gcda")
        )

    def _read(self) -> Iterator[tuple[str, int, tuple[int, int, int], NDArray[numpy.int64]]]:
        for path in self._paths():
            notes = "/" + str(path.relative_to(self._folder).with_suffix(".gcno"))
            try:
                stamp, records = _counters(path.read_bytes())
            except (OSError, DamagedNotes):  # a killed process wrote only a part
                continue
            for key, values in records:
                yield notes, stamp, key, values


def _counters(data: bytes) -> tuple[int, list[tuple[tuple[int, int, int], NDArray[numpy.int64]]]]:
    reader = Reader(data, b"gcda")
    if reader.release >= 12:
        reader.word()  # checksum
    found = []
    key = (0, 0, 0)
    while reader.at + 8 <= len(data):
        tag = reader.word()
        length = struct.unpack("=i", struct.pack("=I", reader.word()))[0]
        start = reader.at
        if tag == _FUNCTION and length:
            key = (reader.word(), reader.word(), reader.word())
        elif tag == _COUNTERS:
            size = abs(length) * reader.unit
            if length < 0:  # all of them are 0, and left out
                found.append((key, numpy.zeros(size // 8, numpy.int64)))
            elif start + size > len(data):
                raise DamagedNotes("it ends too early")
            else:
                found.append((key, numpy.frombuffer(data[start : start + size], "<i8")))
        reader.at = start + max(length, 0) * reader.unit
    return reader.stamp, found
