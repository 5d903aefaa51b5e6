"""A run of numbers of a column in few bytes, and back; the body of :mod:`perun.profile.format.columnar`.

Numbers of a column resemble each other: times of calls need two bytes of eight, and their starts grow by
small steps. So the numbers, or the steps from one to the next, are stored as what they exceed the least of
them by, in as few bytes as hold the largest, all lowest bytes first; deflate then makes that smaller.

The head of a chunk, little-endian: form (0: whole numbers; 1: floats that are a whole number of thousandths,
stored as that number; 2: the bits of floats), 1 if steps are stored, bytes of each number (0, 1, 2, 4, 8), a
zero byte, count of numbers (32 bits), the least number, and the first one where steps are stored (64 bits
each). Raw deflate follows, if the numbers have any bytes. All of it is written as ASCII
(:mod:`perun.profile.format.seven_bits`).
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any, Final

from perun.profile.format import seven_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_NUMBERS: Final = 1 << 16
"""Numbers of a chunk at most, which is what is decoded at once."""
WHOLE, THOUSANDTHS, BITS = range(3)
"""The forms of a chunk."""

_HEAD: Final = struct.Struct("<BBBxIqq")
_WIDTHS: Final = (0, 1, 2, 4, 8)
_LEVEL: Final = 1  # on columns of times as good as the default within a tenth, in a quarter of the time
_RAW: Final = -zlib.MAX_WBITS
_TRIED: Final = 1 << 12  # numbers by which the better of two ways is found
_SCALE: Final = 1000.0


class InvalidChunk(ValueError):
    """No chunk looks like this; the message says why."""


def encoded(values: NDArray[Any]) -> bytes:
    """The chunk of `values`, int64 or float64, of shape (n,) with n from 1 to :data:`MAX_NUMBERS`.

    What :func:`decoded` gives back is the same bit by bit.
    """
    import numpy as np

    if values.dtype.kind != "f":
        return _encoded(WHOLE, np.asarray(values, np.int64))
    with np.errstate(all="ignore"):
        thousandths = np.rint(values * _SCALE).astype(np.int64)
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    if np.array_equal((thousandths / _SCALE).view(np.int64), bits):
        return _encoded(THOUSANDTHS, thousandths)
    return _encoded(BITS, bits)


def encoded_thousandths(values: NDArray[Any]) -> bytes:
    """The chunk of the floats `values / 1000`, for `values` of int64."""
    return _encoded(THOUSANDTHS, values)


def decoded(data: bytes | memoryview, kind: str) -> NDArray[Any]:
    """The numbers of a chunk: int64 where `kind` is `q`, float64 where it is `d`.

    :raises InvalidChunk: whatever `data` holds; no more memory is taken than for :data:`MAX_NUMBERS`.
    """
    form, numbers = _decoded(data)
    if (form == WHOLE) != (kind == "q"):
        raise InvalidChunk(f"a chunk of the form {form} in a column of the kind {kind!r}")
    if form == THOUSANDTHS:
        return numbers / _SCALE
    return numbers.view("f8") if form == BITS else numbers


def decoded_thousandths(data: bytes | memoryview) -> NDArray[Any]:
    """The numbers that :func:`encoded_thousandths` was given; errors as :func:`decoded`."""
    form, numbers = _decoded(data)
    if form != THOUSANDTHS:
        raise InvalidChunk(f"a chunk of the form {form} in place of thousandths")
    return numbers


def _encoded(form: int, values: NDArray[Any]) -> bytes:
    if len(values) <= _TRIED:
        return min((_tried(form, values, steps) for steps in (False, True)), key=len)
    sample = values[:_TRIED]
    return _tried(form, values, len(_tried(form, sample, True)) < len(_tried(form, sample, False)))


def _tried(form: int, values: NDArray[Any], steps: bool) -> bytes:
    import numpy as np

    # All of this is modulo 2^64, so that no difference is too large.
    numbers = values[1:] - values[:-1] if steps else values
    least = int(numbers.min()) if len(numbers) else 0
    excess = (numbers - np.int64(least)).view(np.uint64)
    largest = int(excess.max()) if len(numbers) else 0
    width = next(one for one in _WIDTHS if largest < 1 << 8 * one)
    head = _HEAD.pack(form, steps, width, len(values), least, int(values[0]) if steps else 0)
    if not width:
        return seven_bits.packed(head)
    planes = excess.astype(f"<u{width}").view(np.uint8).reshape(-1, width).T.tobytes()
    stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
    return seven_bits.packed(head + stream.compress(planes) + stream.flush())


def _decoded(text: bytes | memoryview) -> tuple[int, NDArray[Any]]:
    import numpy as np

    data = seven_bits.unpacked(text)
    if data is None:
        raise InvalidChunk("a chunk is not written in seven bits")
    if len(data) < _HEAD.size:
        raise InvalidChunk("a chunk is shorter than its head")
    form, steps, width, count, least, first = _HEAD.unpack_from(data)
    if form not in (WHOLE, THOUSANDTHS, BITS) or steps > 1 or width not in _WIDTHS:
        raise InvalidChunk("a chunk is in no known form")
    if not 0 < count <= MAX_NUMBERS:
        raise InvalidChunk(f"a chunk of {count} numbers; expected 1 to {MAX_NUMBERS}")
    stored = count - steps
    planes = _inflated(data[_HEAD.size :], stored * width)
    excess = np.zeros(stored, np.uint64)
    if width:
        rows = np.frombuffer(planes, np.uint8).reshape(width, stored).T
        excess = np.ascontiguousarray(rows).view(f"<u{width}").reshape(-1).astype(np.uint64)
    numbers = excess.view(np.int64) + np.int64(least)
    if not steps:
        return form, numbers
    whole = np.empty(count, np.int64)
    whole[0], whole[1:] = first, numbers
    return form, np.cumsum(whole, out=whole)


def _inflated(data: bytes, size: int) -> bytes:
    """Exactly `size` bytes, from raw deflate that ends with the data."""
    if not size and not data:
        return b""
    stream = zlib.decompressobj(_RAW)
    try:
        found = stream.decompress(data, size + 1)
    except zlib.error as problem:
        raise InvalidChunk(f"a chunk does not decompress: {problem}") from None
    if len(found) != size or not stream.eof or stream.unused_data:
        raise InvalidChunk("a chunk does not have the size that its head says")
    return found
