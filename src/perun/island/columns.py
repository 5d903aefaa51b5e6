"""The calls of a recording as one numpy array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from perun.island import layout
from perun.island.scan import Scan
from perun.island.slots import SLOT, is_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.void]
    Times = NDArray[np.int64]
    Islands = NDArray[np.int32]

DTYPE: Final = [
    *(("thread", "i4"), ("island", "i4"), ("api", "u2"), ("start", "i8"), ("end", "i8"), ("object", "i4")),
    *(("amount", "i8"), ("physical", "i8"), ("expected", "i8"), ("arrived", "i8"), ("flags", "u2")),
]
"""The fields of `recorded.Call`, for numpy."""


def table(scan: Scan, islands: list[int]) -> Table:
    """All calls, by thread and start.

    :param islands: the island in which each thread begins.
    :raises DamagedCallRecording: where the file changed meanwhile.
    """
    import numpy as np

    parts = [_of_thread(scan, number, islands[number]) for number in sorted(scan.chunks)]
    return np.concatenate(parts) if parts else np.zeros(0, DTYPE)


def entered(scan: Scan, number: int) -> tuple[Times, Islands]:
    """When a thread entered which island."""
    import numpy as np

    slots = _slots(scan, number)
    notes = slots[slots["api"] == layout.NOTE_ENTERED]
    return notes["start"].astype(np.int64), notes["object"].astype(np.int32)


def _slots(scan: Scan, number: int) -> Table:
    import numpy as np

    with scan._opened() as file:
        pieces = [scan.array(file, chunk) for chunk in scan.chunks.get(number, [])]
    return np.concatenate([piece[~is_text(piece)] for piece in pieces] or [np.zeros(0, SLOT)])


def _of_thread(scan: Scan, number: int, island: int) -> Table:
    import numpy as np

    slots = _slots(scan, number)
    calls = slots[(slots["api"] > 0) & (slots["api"] < len(layout.APIS))]
    calls = calls[np.argsort(calls["start"], kind="stable")]
    made = np.zeros(len(calls), DTYPE)
    made["thread"] = number
    for name in ("api", "start", "amount"):
        made[name] = calls[name]
    made["end"] = np.where(calls["end"], calls["end"].astype(np.int64), -1)
    made["flags"] = calls["flags"] & ~np.uint16(layout.PHYSICAL)
    made["physical"] = np.where(calls["flags"] & layout.PHYSICAL, calls["amount"], 0)
    made["object"] = _positions(scan, calls["object"])
    made["island"] = _islands(slots, calls["start"], island)
    made["expected"] = made["arrived"] = -1
    for note, name in ((layout.NOTE_EXPECTED, "expected"), (layout.NOTE_ARRIVED, "arrived")):
        at, notes = _notes(slots, calls["start"], note)
        np.maximum.at(made[name], at, notes["end"].astype(np.int64))
    # It is asked for after the call, and told in ms.
    made["arrived"] = np.minimum(made["arrived"], made["end"])
    at, notes = _notes(slots, calls["start"], layout.NOTE_PHYSICAL)
    np.add.at(made["physical"], at, notes["amount"])
    return made


def _notes(slots: Table, starts: NDArray[np.uint64], note: int) -> tuple[NDArray[np.intp], Table]:
    """Positions of the calls that notes of one kind are about, and the notes."""
    import numpy as np

    notes = slots[slots["api"] == note]
    at = np.searchsorted(starts, notes["start"], "right") - 1
    fits = (at >= 0) & (len(starts) > 0)
    fits[fits] = starts[at[fits]] == notes["start"][fits]
    return at[fits], notes[fits]


def _positions(scan: Scan, numbers: NDArray[np.uint32]) -> NDArray[np.int32]:
    import numpy as np

    known = np.array(sorted(scan.positions), np.uint32)
    if not len(known):
        return np.full(len(numbers), -1, np.int32)
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.where(known[at] == numbers, at, -1).astype(np.int32)


def _islands(slots: Table, starts: NDArray[np.uint64], island: int) -> NDArray[np.int32]:
    import numpy as np

    entered = slots[slots["api"] == layout.NOTE_ENTERED]
    numbers = np.concatenate([np.array([island], np.int64), entered["object"].astype(np.int64)])
    return numbers[np.searchsorted(entered["start"], starts, "right")].astype(np.int32)
