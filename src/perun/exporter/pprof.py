"""Exporter of pprof: `profile.proto`, packed by gzip; see :mod:`perun.importer.pprof`."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from perun.exporter._common import Note, StackParams, nanoseconds, program_of, stack_values
from perun.profile.calls import Frame
from perun.profile.factory import Profile

_UNITS: Final = {"B": "bytes", "": "count", "instr": "count"}
_MOST: Final = (1 << 63) - 1


class PprofExporter:
    """Writes call stacks, with all that was sampled; times in nanoseconds."""

    name: ClassVar[str] = "pprof"
    help: ClassVar[str] = (
        "pprof's profile.proto (.pb.gz), for go tool pprof, Perfetto, Speedscope and others."
    )
    suffix: ClassVar[str] = ".pb.gz"
    Params: ClassVar[type] = StackParams

    def write(self, profile: Profile, params: StackParams, note: Note) -> Iterator[bytes]:
        """The packed file."""
        found = stack_values(profile, params.of, note)
        strings: dict[str, int] = {"": 0}

        def text(value: str) -> int:
            return strings.setdefault(value, len(strings))

        scales, body = [], []
        for name, unit in found.units.items():
            scale = nanoseconds(unit)
            scales.append(scale or 1.0)
            spelled = "nanoseconds" if scale else _UNITS.get(unit, unit)
            body.append(_bytes(1, _number(1, text(name)) + _number(2, text(spelled))))
        functions: dict[tuple[str, str], int] = {}
        frames: dict[Frame, int] = {}
        for stack, amounts in found.amounts.items():
            numbers = [frames.setdefault(frame, len(frames) + 1) for frame in reversed(stack)]
            values = [_scaled(*one) for one in zip(amounts, scales, strict=True)]
            body.append(_bytes(2, _bytes(1, _packed(numbers)) + _bytes(2, _packed(values))))
        body.append(_bytes(3, _number(1, 1) + _number(5, text(program_of(profile))) + _number(7, 1)))
        for frame, number in frames.items():
            function = functions.setdefault((frame.name, frame.source), len(functions) + 1)
            line = _number(1, function) + (_number(2, frame.line) if frame.line else b"")
            body.append(_bytes(4, _number(1, number) + _number(2, 1) + _bytes(4, line)))
        for (name, source), number in functions.items():
            fields = (number, text(name), text(name), text(source))
            body.append(_bytes(5, b"".join(_number(at, one) for at, one in enumerate(fields, 1))))
        body += [_bytes(6, one.encode("utf-8", "replace")) for one in strings]
        body.append(_number(14, strings[next(iter(found.units))]))
        yield gzip.compress(b"".join(body), mtime=0)


def _scaled(amount: float, scale: float) -> int:
    return int(max(-_MOST, min(_MOST, round(amount if scale == 1 else amount * scale))))


def varint(value: int) -> bytes:
    """A number as Protocol Buffers write it: seven bits a byte; a negative one by its complement."""
    value &= (1 << 64) - 1
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def _packed(values: Iterable[int]) -> bytes:
    return b"".join(map(varint, values))


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def _bytes(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


PLUGIN = PprofExporter
