"""Any bytes as ASCII without zero bytes: seven bits in each, eight for seven bytes.

So a profile by columns is text to releases that do not know its layout, which then say that it is no profile,
where bytes that are no UTF-8 would stop all that they do. A zero byte, which ends the header of an object, is
written as 1 2, and 1 as 1 3.
"""

from __future__ import annotations

from typing import Final

_BITS: Final = 7


def packed(data: bytes) -> bytes:
    """The bytes as ASCII, the lowest seven bits first."""
    import numpy as np

    groups = -(-len(data) // 7)
    eights = np.zeros((groups, 8), np.uint8)
    eights[:, :7] = np.frombuffer(data + bytes(7 * groups - len(data)), np.uint8).reshape(groups, 7)
    numbers = eights.view("<u8")
    shifts = np.arange(0, 8 * _BITS, _BITS, dtype=np.uint64)
    text = ((numbers >> shifts) & np.uint64(0x7F)).astype(np.uint8).tobytes()
    return _escaped(text[: -(-len(data) * 8 // 7)])


def unpacked(text: bytes | memoryview) -> bytes | None:
    """The bytes that :func:`packed` made `text` of; None if it made none such."""
    import numpy as np

    escaped = bytes(text)
    text = escaped.replace(b"\x01\x02", b"\0").replace(b"\x01\x03", b"\x01")
    size = len(text) * 7 // 8
    if -(-size * 8 // 7) != len(text) or _escaped(text) != escaped:
        return None
    groups = -(-len(text) // 8)
    sevens = np.frombuffer(text + bytes(8 * groups - len(text)), np.uint8).reshape(groups, 8)
    if (sevens > 0x7F).any():
        return None
    numbers = np.zeros(groups, np.uint64)
    for place in range(8):
        numbers |= sevens[:, place].astype(np.uint64) << np.uint64(_BITS * place)
    data = numbers.astype("<u8").view(np.uint8).reshape(groups, 8)[:, :7].tobytes()
    return data[:size] if not any(data[size:]) else None


def _escaped(text: bytes) -> bytes:
    return text.replace(b"\x01", b"\x01\x03").replace(b"\0", b"\x01\x02")
