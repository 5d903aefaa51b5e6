"""Importer of pprof: `profile.proto`, mostly packed by gzip, as Go, gperftools, samply and others write it.

The messages and fields are those of https://github.com/google/pprof/blob/main/proto/profile.proto, read off
the wire format of Protocol Buffers: no more of that is needed than two functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from os.path import basename
from typing import ClassVar, Final

from perun.importer._common import note_cut
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.profile.calls import Frame
from perun.profile.sampled import MOST_DEPTH, SampledStacks, unit_name

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = 1, 2, 3, 4, 5, 6
_TIME, _DEFAULT = 9, 14
_NUMBERS: Final = frozenset({7, 8, 9, 10, 12, 14, 15})
_RESERVED: Final = frozenset({"amount", "type", "subtype", "uid", "trace", "order", "timestamp"})
_LARGEST: Final = (1 << 64) - 1
Message = dict[int, list[int | memoryview]]


class PprofImporter:
    """Reads the samples of all their types; the amount is that which pprof shows by default."""

    name: ClassVar[str] = "pprof"
    help: ClassVar[str] = "pprof's profile.proto (.pb.gz), of Go, gperftools, samply and others."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """All fields are those of a profile, as far as they are there, and one is a sample type."""
        data, at, types = memoryview(head), 0, 0
        while at < len(data):
            try:
                key, at = varint(data, at)
                size, at = varint(data, at)
            except IndexError:  # the rest of it is behind the head
                break
            except ValueError:
                return False
            field, kind = key >> 3, key & 7
            if not 1 <= field <= 15 or kind != (_VARINT if field in _NUMBERS else _BYTES):
                return False
            if field == _SAMPLE_TYPE:
                types += 1
            at += size if kind == _BYTES else 0
        return types > 0

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """One profile."""
        whole = message(memoryview(file.data()))
        strings = [str(one, "utf-8", "replace") for one in _messages(whole, _STRING)]
        types = [message(one) for one in _messages(whole, _SAMPLE_TYPE)]
        if not types or not strings:
            raise file.wrong("it has no sample types, or no strings")
        names: dict[str, str] = {}
        for number, one in enumerate(types):
            name = strings[_int(one, 1)] or "samples"
            name = f"{name}_{number}" if name in names or name in _RESERVED else name
            names[name] = unit_name(strings[_int(one, 2)])
        wanted = strings[_int(whole, _DEFAULT)]
        main = list(names).index(wanted) if wanted in names else len(names) - 1
        order = [main, *(number for number in range(len(names)) if number != main)]
        listed = list(names)
        stacks = SampledStacks({listed[number]: names[listed[number]] for number in order})
        frames = _frames(whole, strings)
        nodes: dict[tuple[bytes | int, ...], int] = {}
        for sample in map(message, _messages(whole, _SAMPLE)):
            places = tuple([one if isinstance(one, int) else bytes(one) for one in sample.get(1, ())])
            node = nodes.get(places)
            if node is None:
                stack: list[Frame] = []
                for place in _ints(sample, 1):
                    stack += frames[place]
                    if len(stack) > MOST_DEPTH:
                        break
                node = nodes[places] = stacks.node(stack[::-1])
            values = [_signed(value) for value in _ints(sample, 2)]
            stacks.add(node, *[values[number] for number in order])
        mappings = [message(one) for one in _messages(whole, _MAPPING)]
        program = basename(strings[_int(mappings[0], 5)]) if mappings else ""
        note_cut(stacks, file, ctx)
        moment = _signed(_int(whole, _TIME)) / 1e9
        name = f"{self.name}.{listed[main]}"  # what a program takes of one is no run of another
        yield Imported(stacks.profile(name, program), moment=moment if moment > 0 else None)


def _frames(whole: Message, strings: list[str]) -> dict[int, list[Frame]]:
    """Of each location its frames, the innermost first: functions that are inlined, and where they are."""
    binaries = {}
    for one in map(message, _messages(whole, _MAPPING)):
        binaries[_int(one, 1)] = basename(strings[_int(one, 5)])
    functions = {}
    for one in map(message, _messages(whole, _FUNCTION)):
        functions[_int(one, 1)] = (strings[_int(one, 2)] or strings[_int(one, 3)], strings[_int(one, 4)])
    frames = {}
    for one in map(message, _messages(whole, _LOCATION)):
        own = []
        for line in map(message, _messages(one, 4)):
            name, source = functions[_int(line, 1)]
            own.append(Frame(name or "?", source, max(_signed(_int(line, 2)), 0)))
        frames[_int(one, 1)] = own or [Frame(f"0x{_int(one, 3):x}", binaries.get(_int(one, 2), ""))]
    return frames


def message(data: memoryview) -> Message:
    """The fields of a message by number: whole numbers of 64 bits, and bytes.

    :raises ValueError: where it is none.
    """
    fields: Message = {}
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        kind = key & 7
        value: int | memoryview
        if kind == _VARINT:
            value, at = varint(data, at)
        else:
            size = {_FIXED64: 8, _FIXED32: 4}.get(kind, -1)
            if kind == _BYTES:
                size, at = varint(data, at)
            if not 0 <= size <= end - at:
                raise ValueError("a field is longer than its message, or of an unknown kind")
            value, at = data[at : at + size], at + size
        fields.setdefault(key >> 3, []).append(value)
    return fields


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number of 64 bits at most, and the position behind it."""
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _LARGEST, at
        shift += 7
    raise ValueError("a number has more than 64 bits")


def _int(fields: Message, number: int) -> int:
    value = fields.get(number, (0,))[-1]
    if not isinstance(value, int):
        raise ValueError(f"field {number} is no number")
    return value


def _ints(fields: Message, number: int) -> Iterator[int]:
    """The numbers of a repeated field, packed or not."""
    for one in fields.get(number, ()):
        if isinstance(one, int):
            yield one
            continue
        data = bytes(one)
        if data.isascii():  # each of one byte
            yield from data
            continue
        value = shift = 0
        for byte in data:
            value |= (byte & 0x7F) << shift
            if byte >= 0x80:
                shift += 7
                if shift < 70:
                    continue
                raise ValueError("a number has more than 64 bits")
            yield value & _LARGEST
            value = shift = 0
        if shift:
            raise IndexError("a number is cut off")


def _messages(fields: Message, number: int) -> Iterator[memoryview]:
    for one in fields.get(number, ()):
        if isinstance(one, int):
            raise ValueError(f"field {number} is no message")
        yield one


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


PLUGIN = PprofImporter
